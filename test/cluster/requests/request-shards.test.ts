// Shard 0 moves to another node between a request's read and its write: three active nodes in this process.
import { expect } from "bun:test";
import { SQL } from "bun";
import { FIRST_SHARD } from "#base/shards.ts";
import type { Statement } from "#db/engine/sql.ts";
import type { PgStore } from "#db/pg/store.ts";
import { ApiError, Client } from "#src/client.ts";
import type { Context } from "#src/context/context.ts";
import { startActiveNodes } from "#test/support/cluster/active-nodes.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { createDatabase } from "#test/support/postgres.ts";
import { CHEAP_HASH } from "#test/support/prepared.ts";
import { ADMIN, tempDirectory, testConfig } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { awaitOutcome } from "../../db/contract.ts";

const TOKENS = "/api/v2/users/me/keys/tokens";
const note = (text: string): Statement => ({ sql: "insert into noted (text) values (?)", rows: [[text]] });

type RequestSteps = {
  readonly before?: (write: Context["store"]["commit"]) => Promise<void>;
  readonly after?: () => Promise<unknown>;
};

const openNodes = async () => {
  const database = await createDatabase();
  const temp = tempDirectory();
  const loadNodeConfig = (access: URL) => testConfig(temp.path, { env: { SLIPWAY_ACCESS_URL: access.href } });
  const nodes = await startActiveNodes(database.url, loadNodeConfig, { hashCost: CHEAP_HASH });
  const sql = new SQL(database.url, { max: 1 });
  await sql.unsafe("create table noted (n bigserial primary key, text text not null)");
  const first = nodes.contexts[0] as Context;
  const admin = await new Client(nodes.url).signIn(ADMIN.email, ADMIN.password);
  /** Gives `first` two additional shards, of which only shard 0 may move. */
  const addMovableShards = () =>
    sql.unsafe(
      `update parts set given_at = case when part = 0 then '-infinity' else clock_timestamp() end,
         node = f.node, epoch = f.epoch from fences f
       where f.node = $1 and (part = 0 or part in (select part from parts where node <> $1 order by part limit 2))`,
      [first.cluster?.id],
    );
  /** Holds requests that create keys on the first node before their commit; `before` and `after` run at that point in the request. */
  const holdKeyRequests = ({ before, after }: RequestSteps = {}) => {
    const [reached, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const outcomes: string[] = [];
    const write = first.store.commit.bind(first.store);
    first.store.commit = async (batch, options) => {
      if (!batch.some(({ sql }) => /^insert into "api_keys"/.test(sql))) return write(batch, options);
      await before?.(write);
      reached.resolve();
      await released.promise;
      await after?.();
      const written = write(batch, options);
      outcomes.push(await awaitOutcome(written));
      return written;
    };
    return { reached: reached.promise, release: () => released.resolve(), outcomes };
  };
  const findOwner = async (): Promise<string> =>
    (await sql.unsafe("select node from parts where part = $1", [FIRST_SHARD]))[0].node;
  const listNotes = async (): Promise<string[]> =>
    (await sql.unsafe("select text from noted order by n")).map(({ text }: { text: string }) => text);
  return {
    ...nodes,
    first,
    admin,
    addMovableShards,
    holdKeyRequests,
    findOwner,
    listNotes,
    others: nodes.contexts.slice(1),
    makeToken: () => admin.post<{ key: string }>(TOKENS, { token_name: "once", lifetime: 3_600_000_000_000 }),
    listTokenNames: async () => (await admin.get<{ token_name: string }[]>(TOKENS)).map(({ token_name }) => token_name),
    async [Symbol.asyncDispose]() {
      await nodes.stop();
      await sql.close();
      await database.remove();
      temp[Symbol.dispose]();
    },
  };
};

const waitForMove = (nodes: Awaited<ReturnType<typeof openNodes>>) =>
  until(() => nodes.others.some(({ shards }) => shards.isFirst), { what: "another node to be the first one" });

testNeeding(
  [needs.postgres],
  "[CL-40] [CL-41] a request's write after another node became the first node is refused, and that node executes the request once",
  async () => {
    await using nodes = await openNodes();
    const { admin, first } = nodes;
    // Numbers are reserved for all requests: a reservation is neither rejected with a request, nor counts as its write.
    const reserveNumbers = async () => {
      (first.store as PgStore).discardNumbers();
      await first.store.reserve("jobs", 1);
    };
    const heldRequest = nodes.holdKeyRequests({ after: reserveNumbers });
    const pendingToken = nodes.makeToken();
    await heldRequest.reached;
    await nodes.addMovableShards();
    await waitForMove(nodes);
    expect(first.shards.isFirst).toBe(false);
    heldRequest.release();
    const { key } = await pendingToken;
    expect(heldRequest.outcomes).toEqual(["moved"]);
    expect(await nodes.listTokenNames()).toEqual(["once"]);
    expect(await new Client(nodes.url, key).get("/api/v2/users/me")).toMatchObject({ username: ADMIN.username });
    expect(admin.token).not.toBe(key);
  },
);

testNeeding(
  [needs.postgres],
  "[CL-41] a request that has already written learns that its shard has moved, and is not retried on another node",
  async () => {
    await using nodes = await openNodes();
    const heldRequest = nodes.holdKeyRequests({ before: (write) => write([note("before")]) });
    const pendingToken = nodes.makeToken().catch((error) => error);
    await heldRequest.reached;
    await nodes.addMovableShards();
    await waitForMove(nodes);
    heldRequest.release();
    const error = await pendingToken;
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({ status: 503 });
    expect(error.message).toContain("Another server is handling this now");
    expect(heldRequest.outcomes).toEqual(["moved"]);
    expect([await nodes.listTokenNames(), await nodes.listNotes()]).toEqual([[], ["before"]]);
  },
);

testNeeding(
  [needs.postgres],
  "[CL-42] [CL-40] a handover waits for requests in progress; work that continues after a response can still write when its shard has moved",
  async () => {
    await using nodes = await openNodes();
    const finished = Promise.withResolvers<void>();
    let later: Promise<void> | undefined;
    const heldRequest = nodes.holdKeyRequests({
      before: async (write) => {
        later = finished.promise.then(() => write([note("later")]));
      },
    });
    const pendingToken = nodes.makeToken();
    await heldRequest.reached;
    await nodes.addMovableShards();
    await until(() => !nodes.first.shards.has(FIRST_SHARD), { what: "the shard to be in transit" });
    expect(await nodes.findOwner()).toBe(nodes.first.cluster?.id ?? "");
    heldRequest.release();
    await pendingToken;
    expect(heldRequest.outcomes).toEqual(["done"]);
    await waitForMove(nodes);
    expect(await nodes.findOwner()).not.toBe(nodes.first.cluster?.id ?? "");
    finished.resolve();
    await later;
    expect([await nodes.listTokenNames(), await nodes.listNotes()]).toEqual([["once"], ["later"]]);
  },
);
