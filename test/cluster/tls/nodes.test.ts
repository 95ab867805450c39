// Nodes with TLS as separate processes: whichever node is called, requests, streams and WebSockets reach the responsible node.
import { afterAll, expect } from "bun:test";
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "#src/client.ts";
import { makeAuthority, makeCertificate } from "#test/cli/certificate.ts";
import { createChat, Follower, sendMessage } from "#test/support/chats.ts";
import { type NodeProcess, startCluster } from "#test/support/cluster.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { ADMIN, tempDirectory } from "#test/support/server.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";

/** Without the address at which nodes reach each other. */
const NAMES = "DNS:slipway.example.com";
// The nodes verify certificates; this process only makes requests.
const before = process.env.NODE_TLS_REJECT_UNAUTHORIZED;
process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
afterAll(() => {
  if (before === undefined) delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
  else process.env.NODE_TLS_REJECT_UNAUTHORIZED = before;
});

type Files = { readonly cert: string; readonly key: string };
type CreatedWorkspace = { readonly id: string; readonly latest_build: { readonly status: string } };
type Work = { readonly admin: Client; readonly owners: readonly string[]; readonly template: string; count: number };

const openTlsWorld = async (setting: Record<string, string>) => {
  const folder = tempDirectory();
  const authority = await makeAuthority(folder.path);
  const cluster = await startCluster();
  const [cert, key] = [join(folder.path, "now.pem"), join(folder.path, "now.key")];
  const installCertificate = (files: Files): void => {
    copyFileSync(files.cert, cert);
    copyFileSync(files.key, key);
  };
  const env = (files: Files = { cert, key }) => ({
    ...setting,
    SLIPWAY_TLS_CERT_FILE: files.cert,
    SLIPWAY_TLS_KEY_FILE: files.key,
    NODE_EXTRA_CA_CERTS: authority.cert,
  });
  return {
    folder: folder.path,
    authority,
    cluster,
    installCertificate,
    start: (n: number, files?: Files) => cluster.start(n, { env: env(files) }),
    async [Symbol.asyncDispose]() {
      await cluster[Symbol.asyncDispose]();
      folder[Symbol.dispose]();
    },
  };
};

const OWNERS = 6;
const prepare = async (node: NodeProcess): Promise<Work> => {
  const admin = await new Client(node.url).signIn(ADMIN.email, ADMIN.password);
  const { organization_ids } = await admin.get<{ organization_ids: string[] }>("/api/v2/users/me");
  const template = await makeTemplate(admin);
  const owners = await Promise.all(
    Array.from({ length: OWNERS }, async (_, n) => {
      const account = { email: `o${n}@example.com`, username: `o${n}`, password: "of an owner of workspaces" };
      return (
        await admin.post<{ id: string }>("/api/v2/users", { ...account, login_type: "password", organization_ids })
      ).id;
    }),
  );
  return { admin, owners, template: template.id, count: 0 };
};

/** Tests requests, builds, a following WebSocket and a chat stream, each through the nodes alternately. */
const testWork = async (nodes: readonly NodeProcess[], work: Work): Promise<void> => {
  const clientAt = (n: number): Client => new Client((nodes[n % nodes.length] as NodeProcess).url, work.admin.token);
  work.count += 1;
  const created = await Promise.all(
    work.owners.map((owner, n) =>
      clientAt(n).post<CreatedWorkspace>(`/api/v2/users/${owner}/workspaces`, {
        name: `w${work.count}`,
        template_id: work.template,
      }),
    ),
  );
  await until(
    async () => {
      const workspaces = await Promise.all(
        created.map(({ id }, n) => clientAt(n + 1).get<CreatedWorkspace>(`/api/v2/workspaces/${id}`)),
      );
      return workspaces.every(({ latest_build }) => latest_build.status === "running");
    },
    { what: "all builds to succeed" },
  );
  await Promise.all(
    created.map(({ id }, n) => until(() => isWatched(clientAt(n + 2), id), { what: `a watcher to receive ${id}` })),
  );
  const { organization_ids } = await work.admin.get<{ organization_ids: string[] }>("/api/v2/users/me");
  const chat = await createChat({ owner: clientAt(0), organization_id: organization_ids[0] as string }, "hello");
  for (const n of nodes.keys()) {
    const text = `once more ${n}`;
    await until(() => isFollowed(clientAt(n), clientAt(n + 1), chat.id, text), {
      what: `a follower to receive "${text}"`,
    });
  }
};

/** Returns false if the stream ends first, as a watch does. */
const isFollowed = async (client: Client, sender: Client, id: string, text: string): Promise<boolean> => {
  using follower = await Follower.open(client, id);
  let isClosed = false;
  void follower.closed.then(() => {
    isClosed = true;
  });
  try {
    await follower.until(({ status }) => status === "waiting");
    await sendMessage({ owner: sender }, id, text);
    await follower.until(({ history, status }) => status === "waiting" && history.at(-2) === `user: ${text}`);
    return true;
  } catch (error) {
    if (isClosed) return false;
    throw error;
  }
};

/** Returns false if the watch ends first: moving a shard to a node that has just started ends its followers. */
const isWatched = async (client: Client, id: string): Promise<boolean> => {
  using watch = await client.socket(`/api/v2/workspaces/${id}/watch-ws`);
  for await (const message of watch) if (String(message).includes(id)) return true;
  return false;
};

type World = Awaited<ReturnType<typeof openTlsWorld>>;
type Setting = readonly [name: string, setting: Record<string, string>];

/** Checks that nodes with a certificate of another authority, or for another name, cannot join. */
const expectForeignRejected = async (world: World, [name]: Setting): Promise<void> => {
  const foreign = await makeCertificate(world.folder, "strange", `${NAMES},IP:127.0.0.1`);
  const otherName = await world.authority.sign("other", "DNS:elsewhere.example.com,IP:127.0.0.1");
  for (const files of [foreign, otherName]) {
    if (name === "every node active") {
      const refused = await world.start(4, files).catch((error: Error) => error);
      expect(String(refused)).toContain("are not of one cluster");
      continue;
    }
    const spare = await world.start(4, files);
    // The spare forwards nothing to a node whose certificate was issued by an untrusted authority.
    if (files === otherName) {
      const readyz = await fetch(new URL("/readyz", spare.url), { keepalive: false });
      expect([readyz.status, await readyz.text()]).toEqual([503, expect.stringContaining("does not answer")]);
      await until(() => spare.output().includes("has not the certificate of a node"));
    }
    spare.signal("SIGKILL");
    await spare.exited;
  }
};

const startAs = (world: World, n: number, [, setting]: Setting, isTls: boolean): Promise<NodeProcess> =>
  isTls ? world.start(n) : world.cluster.start(n, { env: setting });

/** Checks that a node with the other protocol cannot join. The error must name at least one of `nodes`, the cluster's nodes. */
const expectOtherProtocolRefused = async (
  world: World,
  setting: Setting,
  { speaksTls, nodes }: { readonly speaksTls: boolean; readonly nodes: readonly NodeProcess[] },
): Promise<void> => {
  const refused = await startAs(world, 5, setting, !speaksTls).catch((error: Error) => error);
  const [ownProtocol, otherProtocol] = speaksTls ? ["plain HTTP", "TLS"] : ["TLS", "plain HTTP"];
  expect(String(refused)).toMatch(/ended \(1\)/);
  const [, namedNodes = ""] =
    new RegExp(`this node speaks ${ownProtocol}, and (.+) ${otherProtocol}:`).exec(String(refused)) ?? [];
  expect(nodes.map(({ url }) => `127.0.0.1 port ${url.port}`)).toEqual(expect.arrayContaining(namedNodes.split(", ")));
};

const SETTINGS: readonly Setting[] = [
  ["one node active", { SLIPWAY_CLUSTER_READS: "every" }],
  ["every node active", { SLIPWAY_CLUSTER_ACTIVE: "every" }],
];
for (const setting of SETTINGS) {
  testNeeding(
    [needs.postgres, needs.openssl],
    `[CL-11] [CL-61] with ${setting[0]}, nodes with TLS are one server, also during a certificate renewal, and reject other certificates and plain HTTP`,
    async () => {
      await using world = await openTlsWorld(setting[1]);
      world.installCertificate(await world.authority.sign("first", NAMES));
      const nodes = [await world.start(1), await world.start(2), await world.start(3)];
      const work = await prepare(nodes[1] as NodeProcess);
      await testWork(nodes, work);
      await expectForeignRejected(world, setting);
      await expectOtherProtocolRefused(world, setting, { speaksTls: true, nodes });
      // The files change under nodes that run; each has the new certificate from its next start on.
      world.installCertificate(await world.authority.sign("second", NAMES));
      for (const n of [1, 2, 3]) {
        const node = nodes[n - 1] as NodeProcess;
        node.signal("SIGTERM");
        await node.exited;
        nodes[n - 1] = await world.start(n);
        // Tests one node with the new certificate next to two with the old one, and then three with the new one.
        if (n !== 2) await testWork(nodes, work);
      }
    },
    scaleTimeout(180_000),
  );
}

testNeeding(
  [needs.postgres, needs.openssl],
  "[CL-61] a node with TLS next to one without fails to start with the reason",
  async () => {
    for (const setting of SETTINGS) {
      await using world = await openTlsWorld(setting[1]);
      world.installCertificate(await world.authority.sign("ours", NAMES));
      const node = await startAs(world, 1, setting, false);
      await expectOtherProtocolRefused(world, setting, { speaksTls: false, nodes: [node] });
      // A node with the same protocol as the other one can join.
      await startAs(world, 3, setting, false);
    }
  },
);
