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
    const one = await cluster.start(1);
    const two = await cluster.start(2);
    expect(two.output()).toContain("is on standby");
    const client = await signIn(two);
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
    // Processes belong to one machine.
    const local = await makeTemplate(
      client,
      "provisioner: local\nresources:\n  - name: main\n    agents:\n      - name: main\n",
    ).catch((error: Error) => error);
    const refused =
      local instanceof Error
        ? local.message
        : await client.post("/api/v2/users/me/workspaces", { name: "local", template_id: local.id }).then(
            () => "made",
            (error: Error) => error.message,
          );
    expect(refused).toContain("Local workspaces are not available in a cluster");

    const killed_at = performance.now();
    one.signal("SIGKILL");
    await one.exited;
    // Requests to the spare in the meantime wait.
    const found = await clientAt(two, client).get<{ name: string }>(`/api/v2/workspaces/${workspace.id}`);
    const took_ms = performance.now() - killed_at;
    expect(found.name).toBe("first");
    expect(took_ms).toBeGreaterThan(500);
    expect(took_ms).toBeLessThan(LEASE_MS + 12_000);
    expect(await sendAndRead(clientAt(two, client), chat.id, "and again")).toStartWith("assistant: ");

    // It returns as a spare.
    const again = await cluster.start(1);
    expect(again.output()).toContain("is on standby");
    expect((await clientAt(again, client).get<{ name: string }>(`/api/v2/workspaces/${workspace.id}`)).name).toBe(
      "first",
    );
  },
);

testNeeding(
  [needs.postgres],
  "[CL-1] [CL-5] [CL-16] of two nodes that start an empty cluster together, one is active; when it stops, it hands over, and the other accepts the setup link that the first has printed",
  async () => {
    await using cluster = await startCluster();
    const env = { SLIPWAY_ADMIN_EMAIL: "", SLIPWAY_ADMIN_USERNAME: "", SLIPWAY_ADMIN_PASSWORD: "" };
    const started = await Promise.all([1, 2].map((n) => cluster.start(n, { env })));
    const active = await cluster.active();
    const two = started.find(({ id }) => id !== active.id) as NodeProcess;
    const readyz = async () => (await fetch(new URL("/readyz", two.url))).json();
    const state = { lease: "elsewhere", database: "answers", standby: "not required" };
    expect(await readyz()).toEqual({
      message: "Ready: this node forwards to the active one.",
      node: "spare",
      ...state,
    });
    const setup_token = await until(() => /token=([\w-]{43})/.exec(active.output())?.[1], { what: "the link" });
    active.signal("SIGTERM");
    // At that very moment: requests wait for the next active node, and are not rejected because of the lease.
    const created = await new Client(two.url).fetch("POST", "/api/v2/users/first", { ...ADMIN, setup_token });
    expect(created.status).toBe(201);
    expect(await active.exited).toBe(0);
    await signIn(two);
    expect(await readyz()).toEqual({ message: "Ready.", node: "active", ...state, lease: "held" });
    expect(two.output()).toContain(`node ${two.id} stands by: ${active.id} is active`);
    expect(two.output()).toContain(`node ${two.id} is active, epoch `);
    await until(() => two.output().includes("is listening on"));
    two.signal("SIGTERM");
    expect(await two.exited).toBe(0);
  },
);

testNeeding(
  [needs.postgres],
  "[CL-2] [CL-7] a node that was paused past the end of its lease answers no more requests and exits",
  async () => {
    await using cluster = await startCluster();
    const one = await cluster.start(1);
    const two = await cluster.start(2);
    const client = await signIn(one);
    one.signal("SIGSTOP");
    await until(() => two.output().includes("is listening on"));
    const name = `made-${Date.now()}`;
    await clientAt(two, client).post("/api/v2/users", {
      email: `${name}@example.com`,
      username: name,
      password: "a-long-Enough-secret",
    });
    const late = fetch(new URL("/api/v2/users/me", one.url), {
      headers: { "Service-Session-Token": client.token ?? "" },
    }).then(
      ({ status }) => status,
      () => 0,
    );
    one.signal("SIGCONT");
    expect([0, 503]).toContain(await late);
    expect(await one.exited).toBe(1);
    expect(one.output()).toContain("another node has taken over");
  },
);

testNeeding([needs.postgres], "[CL-3] a node with another key is refused when it starts, with advice", async () => {
  await using cluster = await startCluster();
  await cluster.start(1);
  const other = cluster.start(2, { env: { SLIPWAY_ENCRYPTION_KEY: "6".repeat(64) } });
  expect((await other.catch((error: Error) => error.message)) as string).toContain(
    "this node's encryption key is not the cluster's",
  );
});
