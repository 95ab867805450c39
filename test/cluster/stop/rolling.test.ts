// Three nodes behind a load balancer are replaced one after the other during continuous requests, without errors.
import { expect } from "bun:test";
import { type Socket, SQL } from "bun";
import { Client } from "#src/client.ts";
import { startCluster } from "#test/support/cluster.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { ADMIN } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";

const CLIENTS = 6;
const TOKENS = "/api/v2/users/me/keys/tokens";

/**
 * Distributes connections over the nodes in turn, and tries the next one if a connection fails, like a load balancer that does not repeat
 * requests.
 */
const startBalancer = (servers: readonly URL[]) => {
  let nextServer = 0;
  type ProxySide = { readonly other: Promise<Socket<ProxySide> | undefined> };
  const connect = async (client: Socket<ProxySide>): Promise<Socket<ProxySide> | undefined> => {
    for (let tries = 0; tries < 2 * servers.length; tries++) {
      const { hostname, port } = servers[nextServer++ % servers.length] as URL;
      const data = { other: Promise.resolve(client) };
      const connection = await Bun.connect<ProxySide>({ hostname, port: Number(port), data, socket: pipe }).catch(
        () => undefined,
      );
      if (connection) return connection;
    }
    client.terminate();
    return undefined;
  };
  const pipe = {
    data: ({ data: { other } }: Socket<ProxySide>, bytes: Buffer): void => {
      const copy = Buffer.from(bytes);
      void other.then((socket) => socket?.write(copy));
    },
    close: ({ data: { other } }: Socket<ProxySide>): void => void other.then((socket) => socket?.end()),
    error(): void {},
  };
  const listener = Bun.listen<ProxySide>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      ...pipe,
      open: (client) => {
        client.data = { other: connect(client) };
      },
    },
  });
  return { url: new URL(`http://127.0.0.1:${listener.port}/`), [Symbol.dispose]: () => listener.stop(true) };
};

testNeeding(
  [needs.postgres],
  "[CL-5] [CL-24] during a rolling restart of three nodes under load, no request fails, and each write is stored exactly once",
  async () => {
    await using cluster = await startCluster();
    const nodes = new Map<number, Awaited<ReturnType<typeof cluster.start>>>();
    for (const n of [1, 2, 3]) nodes.set(n, await cluster.start(n));
    using balancer = startBalancer([...nodes.values()].map(({ url }) => url));
    const { token = "" } = await new Client(balancer.url).signIn(ADMIN.email, ADMIN.password);
    const problems: string[] = [];
    const created: string[] = [];
    let isRunning = true;
    const sendRequest = async (method: string, path: string, body?: unknown): Promise<void> => {
      const status = await new Client(balancer.url, token).fetch(method, path, body).then(
        async (response) => {
          await response.body?.cancel();
          return response.status;
        },
        (error: Error) => error.message,
      );
      if (typeof status !== "number" || status >= 300) problems.push(`${method} ${path}: ${status}`);
    };
    const clients = Array.from({ length: CLIENTS }, async (_, client) => {
      for (let i = 0; isRunning; i++) {
        const token_name = `t-${client}-${i}`;
        created.push(token_name);
        await sendRequest("POST", TOKENS, { token_name });
        await sendRequest("GET", `${TOKENS}/${token_name}`);
      }
    });
    const waitForProgress = async (): Promise<void> => {
      const createdBefore = created.length;
      await until(() => created.length > createdBefore + 50 || problems.length > 0);
    };
    await waitForProgress();
    // Restarts each node. If only one is active, each has been active and standby by the end.
    for (const n of [1, 2, 3, 1]) {
      const node = nodes.get(n);
      node?.signal("SIGTERM");
      expect(await node?.exited).toBe(0);
      nodes.set(n, await cluster.start(n));
      await waitForProgress();
    }
    isRunning = false;
    await Promise.all(clients);
    expect(problems).toEqual([]);
    await using sql = new SQL(cluster.database.url, { max: 1 });
    const rows = (await sql.unsafe("select token_name from api_keys where token_name like 't-%'")) as {
      token_name: string;
    }[];
    expect(rows.map(({ token_name }) => token_name).sort()).toEqual(created.sort());
  },
  scaleTimeout(240_000),
);
