// A database outage with nodes as separate processes: the database is stopped, or paused, for longer than their lease.
import { expect } from "bun:test";
import { Client } from "#src/client.ts";
import { startSingle } from "#test/support/cluster/postgres-pair.ts";
import { LEASE_MS, type NodeProcess, startCluster } from "#test/support/cluster.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { ADMIN } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";

type Answer = { readonly name: string; readonly status: number; readonly tookMs: number };

/** Measures how long an answer takes. Its status is 0 if the connection broke. */
const measureAnswer = async (name: string, request: Promise<Response>): Promise<Answer> => {
  const startedAt = performance.now();
  const status = await request.then(
    async (response) => response.text().then(() => response.status),
    () => 0,
  );
  return { name, status, tookMs: performance.now() - startedAt };
};

const CONFIGURATIONS = [
  { active: "one", count: 1 },
  { active: "every", count: 3 },
] as const;

for (const { active, count } of CONFIGURATIONS)
  testNeeding(
    [needs.postgres, needs.root],
    `[CL-66] with cluster_active = ${active} requests at the start of an outage are answered in time, and no refused write is stored`,
    async () => {
      await using single = await startSingle();
      const { server } = single;
      const database = { name: "", url: server.url(), cutConnections: async () => {}, remove: async () => {} };
      await using cluster = await startCluster({ database });
      const nodes: NodeProcess[] = [];
      for (let n = 1; n <= count; n++) nodes.push(await cluster.start(n, { env: { SLIPWAY_CLUSTER_ACTIVE: active } }));
      const { token } = await new Client((nodes[0] as NodeProcess).url).signIn(ADMIN.email, ADMIN.password);
      const clients = nodes.map(({ url }) => new Client(url, token));
      const listSecrets = (n: number): Promise<{ name: string }[]> =>
        (clients[n] as Client).get<{ name: string }[]>("/api/v2/users/me/secrets");
      const putSecret = (client: Client, name: string): Promise<Answer> =>
        measureAnswer(name, client.fetch("POST", "/api/v2/users/me/secrets", { name, value: "x" }));
      const isServing = async (): Promise<boolean> =>
        (await Promise.all(clients.map((client) => measureAnswer("", client.fetch("GET", "/readyz"))))).every(
          ({ status }) => status === 200,
        );
      for (const outage of ["frozen", "stopped"]) {
        await until(isServing, { what: "all nodes to serve" });
        const servedBefore = await Promise.all(clients.map((client, n) => putSecret(client, `${outage}_before_${n}`)));
        expect(servedBefore.map(({ status }) => status)).toEqual(clients.map(() => 201));
        if (outage === "frozen") server.signal("SIGSTOP");
        else server.kill();
        const requests = clients.flatMap((client, n) => [
          putSecret(client, `${outage}_${n}_a`),
          putSecret(client, `${outage}_${n}_b`),
          measureAnswer("", client.fetch("GET", "/api/v2/users/me/secrets")),
        ]);
        const answers = await Promise.all(requests);
        if (outage === "frozen") server.signal("SIGCONT");
        else await server.start();
        // No request waits longer than until the end of the lease and the start of another node.
        expect(answers.filter(({ tookMs }) => tookMs > LEASE_MS + 17_000)).toEqual([]);
        expect(answers.filter(({ name, status }) => ![503, name ? 500 : 503].includes(status))).toEqual([]);
        await until(isServing, { what: "all nodes to serve again" });
        const servedAfter = await Promise.all(clients.map((client, n) => putSecret(client, `${outage}_after_${n}`)));
        expect(servedAfter.map(({ status }) => status)).toEqual(clients.map(() => 201));
        const names = new Set((await listSecrets(0)).map(({ name }) => name));
        expect(answers.filter(({ name, status }) => status === 503 && names.has(name))).toEqual([]);
        for (const { name } of [...servedBefore, ...servedAfter]) expect(names.has(name)).toBe(true);
      }
    },
    scaleTimeout(180_000),
  );
