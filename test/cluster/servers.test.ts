// The same story on several nodes as separate processes: whichever node is called, it appears as one server; and what happens when the
// active node is killed, paused, or stopped.
import { expect } from "bun:test";
import { Client } from "#src/client.ts";
import { createChat, Follower, sendMessage } from "#test/support/chats.ts";
import { LEASE_MS, type NodeProcess, startCluster } from "#test/support/cluster.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { ADMIN } from "#test/support/server.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";

const signIn = (node: NodeProcess): Promise<Client> => new Client(node.url).signIn(ADMIN.email, ADMIN.password);
const clientAt = (node: NodeProcess, client: Client): Client => new Client(node.url, client.token);
const getOrganizationId = async (client: Client): Promise<string> =>
  (await client.get<{ organization_ids: string[] }>("/api/v2/users/me")).organization_ids[0] as string;

/** Sends a message and returns the demo model's answer, received by a follower. */
const sendAndRead = async (client: Client, chat: string, text: string): Promise<string> => {
  using follower = await Follower.open(client, chat);
  await follower.until(({ status }) => status !== "");
  await sendMessage({ owner: client }, chat, text);
  await follower.until(
    ({ history, status }) =>
      status === "waiting" &&
      history.at(-1)?.startsWith("assistant: ") === true &&
      history.some((line) => line === `user: ${text}`),
  );
  return follower.history.at(-1) ?? "";
};

testNeeding(
  [needs.postgres],
  "[CL-4] [CL-7] [CL-9] a template, a workspace and a chat that were created through a spare outlive the node that created them",
  async () => {
    await using cluster = await startCluster();
    const firstNode = await cluster.start(1);
    const secondNode = await cluster.start(2);
    expect(secondNode.output()).toContain("is on standby");
    const client = await signIn(secondNode);
    const template = await makeTemplate(client);
    const workspace = await client.post<{ id: string }>("/api/v2/users/me/workspaces", {
      name: "first",
      template_id: template.id,
    });
    await until(async () => {
      const { latest_build } = await client.get<{ latest_build: { job: { status: string } } }>(
        `/api/v2/workspaces/${workspace.id}`,
      );
      return latest_build.job.status === "succeeded";
    });
    const chat = await createChat({ owner: client, organization_id: await getOrganizationId(client) }, "hello");
    expect(await sendAndRead(client, chat.id, "once more")).toStartWith("assistant: ");
    // Local workspaces are processes of one machine.
    const localTemplate = await makeTemplate(
      client,
      "provisioner: local\nresources:\n  - name: main\n    agents:\n      - name: main\n",
    ).catch((error: Error) => error);
    const refused =
      localTemplate instanceof Error
        ? localTemplate.message
        : await client.post("/api/v2/users/me/workspaces", { name: "local", template_id: localTemplate.id }).then(
            () => "made",
            (error: Error) => error.message,
          );
    expect(refused).toContain("Local workspaces are not available in a cluster");

    const killedAt = performance.now();
    firstNode.signal("SIGKILL");
    await firstNode.exited;
    // Requests to the spare wait until it is active.
    const workspaceAfterKill = await clientAt(secondNode, client).get<{ name: string }>(
      `/api/v2/workspaces/${workspace.id}`,
    );
    const tookMs = performance.now() - killedAt;
    expect(workspaceAfterKill.name).toBe("first");
    expect(tookMs).toBeGreaterThan(500);
    expect(tookMs).toBeLessThan(LEASE_MS + 12_000);
    expect(await sendAndRead(clientAt(secondNode, client), chat.id, "and again")).toStartWith("assistant: ");

    // The killed node returns as a spare.
    const restarted = await cluster.start(1);
    expect(restarted.output()).toContain("is on standby");
    expect((await clientAt(restarted, client).get<{ name: string }>(`/api/v2/workspaces/${workspace.id}`)).name).toBe(
      "first",
    );
  },
);

testNeeding(
  [needs.postgres],
  "[CL-1] [CL-5] [CL-16] of two nodes that start together, one is active; when it stops, the other accepts its setup link",
  async () => {
    await using cluster = await startCluster();
    const env = { SLIPWAY_ADMIN_EMAIL: "", SLIPWAY_ADMIN_USERNAME: "", SLIPWAY_ADMIN_PASSWORD: "" };
    const started = await Promise.all([1, 2].map((n) => cluster.start(n, { env })));
    const active = await cluster.active();
    const secondNode = started.find(({ id }) => id !== active.id) as NodeProcess;
    const readyz = async () => (await fetch(new URL("/readyz", secondNode.url))).json();
    const state = { lease: "elsewhere", database: "answers", standby: "not required" };
    expect(await readyz()).toEqual({
      message: "Ready: this node forwards to the active one.",
      node: "spare",
      ...state,
    });
    const setup_token = await until(() => /token=([\w-]{43})/.exec(active.output())?.[1], { what: "the link" });
    active.signal("SIGTERM");
    // Requests during the handover wait for the next active node; none fails because of the lease.
    const created = await new Client(secondNode.url).fetch("POST", "/api/v2/users/first", { ...ADMIN, setup_token });
    expect(created.status).toBe(201);
    expect(await active.exited).toBe(0);
    await signIn(secondNode);
    expect(await readyz()).toEqual({ message: "Ready.", node: "active", ...state, lease: "held" });
    expect(secondNode.output()).toContain(`node ${secondNode.id} stands by: ${active.id} is active`);
    expect(secondNode.output()).toContain(`node ${secondNode.id} is active, epoch `);
    await until(() => secondNode.output().includes("is listening on"));
    secondNode.signal("SIGTERM");
    expect(await secondNode.exited).toBe(0);
  },
);

testNeeding(
  [needs.postgres],
  "[CL-2] [CL-7] a node that was paused past the end of its lease answers no more requests and exits",
  async () => {
    await using cluster = await startCluster();
    const firstNode = await cluster.start(1);
    const secondNode = await cluster.start(2);
    const client = await signIn(firstNode);
    firstNode.signal("SIGSTOP");
    await until(() => secondNode.output().includes("is listening on"));
    const name = `made-${Date.now()}`;
    await clientAt(secondNode, client).post("/api/v2/users", {
      email: `${name}@example.com`,
      username: name,
      password: "a-long-Enough-secret",
    });
    const lateStatus = fetch(new URL("/api/v2/users/me", firstNode.url), {
      headers: { "Service-Session-Token": client.token ?? "" },
    }).then(
      ({ status }) => status,
      () => 0,
    );
    firstNode.signal("SIGCONT");
    expect([0, 503]).toContain(await lateStatus);
    expect(await firstNode.exited).toBe(1);
    expect(firstNode.output()).toContain("another node has taken over");
  },
);

testNeeding([needs.postgres], "[CL-3] a node with another key is refused when it starts, with advice", async () => {
  await using cluster = await startCluster();
  await cluster.start(1);
  const start = cluster.start(2, { env: { SLIPWAY_ENCRYPTION_KEY: "6".repeat(64) } });
  expect((await start.catch((error: Error) => error.message)) as string).toContain(
    "this node's encryption key is not the cluster's",
  );
});
