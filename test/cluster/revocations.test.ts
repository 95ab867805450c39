// Events on the active node end and update streams served by another node, even if that one missed the event.
import { expect } from "bun:test";
import { SQL } from "bun";
import { Client } from "#src/client.ts";
import { startCluster } from "#test/support/cluster.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { ADMIN } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";

// A lease longer than the checks while the active node is paused, also on a busy machine.
const ALL_READ = { env: { SLIPWAY_CLUSTER_READS: "every", SLIPWAY_CLUSTER_LEASE: "8s" } };
const WATCH = "/api/v2/audit/watch";
const GONE = 1008;

testNeeding(
  [needs.postgres],
  "[CL-23] an ended session, a removed role and a deleted token close a spare's streams immediately, or when it listens again",
  async () => {
    await using cluster = await startCluster();
    const one = await cluster.start(1, ALL_READ);
    const two = await cluster.start(2, ALL_READ);
    const admin = await new Client(one.url).signIn(ADMIN.email, ADMIN.password);
    const { organization_ids } = await admin.get<{ organization_ids: string[] }>("/api/v2/users/me");
    const auditor = { email: "ada@example.com", username: "ada", password: "of ada, who reads the log" };
    const { id } = await admin.post<{ id: string }>("/api/v2/users", {
      ...auditor,
      login_type: "password",
      organization_ids,
    });
    await admin.put(`/api/v2/users/${id}/roles`, { roles: ["auditor"] });
    const signInAuditor = () => new Client(two.url).signIn(auditor.email, auditor.password);

    /** A follower at the spare that has its first list, so it receives events from then on. */
    const follow = async (client: Client) => {
      const socket = await client.socket(WATCH);
      const messages: string[] = [];
      const all = (async () => {
        for await (const message of socket) if (!String(message).includes('"ping"')) messages.push(String(message));
      })();
      await until(() => messages.length > 0, { what: "the first list" });
      let isOpen = true;
      void socket.closed.then(() => {
        isOpen = false;
      });
      return { socket, messages, all, isOpen: () => isOpen };
    };
    const newToken = async (): Promise<{ id: string; client: Client }> => {
      const { key } = await admin.post<{ key: string }>("/api/v2/users/me/keys/tokens", {});
      return { id: key.slice(0, 10), client: new Client(two.url, key) };
    };

    const session = await signInAuditor();
    const [ofSession, token] = [await follow(session), await newToken()];
    const ofToken = await follow(token.client);
    // Both receive changes made elsewhere.
    await newToken();
    await until(() => ofSession.messages.length > 1 && ofToken.messages.length > 1, {
      what: "both to hear of an entry",
    });
    await new Client(one.url, session.token).post("/api/v2/users/logout");
    expect((await ofSession.socket.closed).code).toBe(GONE);
    await admin.delete(`/api/v2/users/me/keys/${token.id}`);
    expect((await ofToken.socket.closed).code).toBe(GONE);

    const ofRole = await follow(await signInAuditor());
    await admin.put(`/api/v2/users/${id}/roles`, { roles: [] });
    expect((await ofRole.socket.closed).code).toBe(GONE);

    // Deaf: the listening connection is cut, and blocked until the node has missed an event.
    const [deaf, kept] = [await newToken(), await newToken()];
    const [ofDeaf, ofKept] = [await follow(deaf.client), await follow(kept.client)];
    await using sql = new SQL(needs.postgres.file, { max: 1 });
    await sql.unsafe(`alter database ${cluster.database.name} allow_connections false`);
    const ended = await sql.unsafe(
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and query ilike 'listen%'",
      [cluster.database.name],
    );
    expect(ended.length).toBe(1);
    await admin.delete(`/api/v2/users/me/keys/${deaf.id}`);
    expect(ofDeaf.isOpen()).toBe(true);
    await sql.unsafe(`alter database ${cluster.database.name} allow_connections true`);
    expect((await ofDeaf.socket.closed).code).toBe(GONE);

    // The spare serves them: they continue, and new ones start, while the active node is paused.
    one.signal("SIGSTOP");
    const another = await follow(kept.client);
    expect([another.messages[0], ofKept.isOpen()]).toEqual(["[]", true]);
    expect(two.output()).not.toContain("is listening on");
    one.signal("SIGCONT");
    another.socket.close();
    ofKept.socket.close();
    await Promise.all([ofSession, ofToken, ofRole, ofDeaf, ofKept, another].map(({ all }) => all));
  },
);
