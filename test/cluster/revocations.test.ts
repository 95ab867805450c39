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
const CLOSE_CODE = 1008;

testNeeding(
  [needs.postgres],
  "[CL-23] an ended session, a removed role and a deleted token close a spare's streams immediately, or when it listens again",
  async () => {
    await using cluster = await startCluster();
    const activeNode = await cluster.start(1, ALL_READ);
    const spareNode = await cluster.start(2, ALL_READ);
    const admin = await new Client(activeNode.url).signIn(ADMIN.email, ADMIN.password);
    const { organization_ids } = await admin.get<{ organization_ids: string[] }>("/api/v2/users/me");
    const auditor = { email: "ada@example.com", username: "ada", password: "of ada, who reads the log" };
    const { id } = await admin.post<{ id: string }>("/api/v2/users", {
      ...auditor,
      login_type: "password",
      organization_ids,
    });
    await admin.put(`/api/v2/users/${id}/roles`, { roles: ["auditor"] });
    const signInAuditor = () => new Client(spareNode.url).signIn(auditor.email, auditor.password);

    /** Opens a follower at the spare. Resolves when it has its first list, and so receives events. */
    const follow = async (client: Client) => {
      const socket = await client.socket(WATCH);
      const messages: string[] = [];
      const reading = (async () => {
        for await (const message of socket) if (!String(message).includes('"ping"')) messages.push(String(message));
      })();
      await until(() => messages.length > 0, { what: "the first list" });
      let isOpen = true;
      void socket.closed.then(() => {
        isOpen = false;
      });
      return { socket, messages, reading, isOpen: () => isOpen };
    };
    const newToken = async (): Promise<{ id: string; client: Client }> => {
      const { key } = await admin.post<{ key: string }>("/api/v2/users/me/keys/tokens", {});
      return { id: key.slice(0, 10), client: new Client(spareNode.url, key) };
    };

    const session = await signInAuditor();
    const [sessionFollower, token] = [await follow(session), await newToken()];
    const tokenFollower = await follow(token.client);
    // Both receive changes made elsewhere.
    await newToken();
    await until(() => sessionFollower.messages.length > 1 && tokenFollower.messages.length > 1, {
      what: "both followers to receive an entry",
    });
    await new Client(activeNode.url, session.token).post("/api/v2/users/logout");
    expect((await sessionFollower.socket.closed).code).toBe(CLOSE_CODE);
    await admin.delete(`/api/v2/users/me/keys/${token.id}`);
    expect((await tokenFollower.socket.closed).code).toBe(CLOSE_CODE);

    const roleFollower = await follow(await signInAuditor());
    await admin.put(`/api/v2/users/${id}/roles`, { roles: [] });
    expect((await roleFollower.socket.closed).code).toBe(CLOSE_CODE);

    // The spare's listening connection is cut, and cannot be reopened until the spare has missed an event.
    const [missedToken, keptToken] = [await newToken(), await newToken()];
    const [missedFollower, keptFollower] = [await follow(missedToken.client), await follow(keptToken.client)];
    await using sql = new SQL(needs.postgres.file, { max: 1 });
    await sql.unsafe(`alter database ${cluster.database.name} allow_connections false`);
    const terminated = await sql.unsafe(
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and query ilike 'listen%'",
      [cluster.database.name],
    );
    expect(terminated.length).toBe(1);
    await admin.delete(`/api/v2/users/me/keys/${missedToken.id}`);
    expect(missedFollower.isOpen()).toBe(true);
    await sql.unsafe(`alter database ${cluster.database.name} allow_connections true`);
    expect((await missedFollower.socket.closed).code).toBe(CLOSE_CODE);

    // The spare serves followers itself: they continue, and new ones start, while the active node is paused.
    activeNode.signal("SIGSTOP");
    const lateFollower = await follow(keptToken.client);
    expect([lateFollower.messages[0], keptFollower.isOpen()]).toEqual(["[]", true]);
    expect(spareNode.output()).not.toContain("is listening on");
    activeNode.signal("SIGCONT");
    lateFollower.socket.close();
    keptFollower.socket.close();
    await Promise.all(
      [sessionFollower, tokenFollower, roleFollower, missedFollower, keptFollower, lateFollower].map(
        ({ reading }) => reading,
      ),
    );
  },
);
