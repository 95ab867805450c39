// A node's cache of agent tokens: short-lived, and only for its own shards, since it is the first to know when a token there becomes
// invalid.
import { afterAll, beforeAll, expect } from "bun:test";
import { sha256 } from "#base/ids.ts";
import { findAgentByToken } from "#db/agents/tokens.ts";
import type { Query } from "#db/engine/sql.ts";
import { AgentTokens } from "#src/api/http/agent-tokens.ts";
import { MovableShards } from "#test/support/cluster/movable-shards.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { getContext, seedAgent } from "#test/support/seed.ts";
import { startTestServer, type TestServer } from "#test/support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server[Symbol.asyncDispose]());

testInProcess(
  "[CP-71] only the node with an agent's shard caches the agent's token, until the token is revoked or the shard moves",
  async () => {
    const agent = await seedAgent(server);
    const hash = sha256(agent.agent_token);
    const shards = new MovableShards();
    const clock = new ManualClock();
    const { store, topics } = getContext(server);
    let lookupCount = 0;
    const countingStore = {
      get<T>(query: Query<T>): Promise<T | undefined> {
        lookupCount++;
        return store.get(query);
      },
    };
    const location = { isHere: shards.isHere, countArrivals: () => shards.arrivals };
    const tokens = new AgentTokens({ store: countingStore, topics, clock, location });
    /** Returns how many lookups it takes to find the token again. */
    const countLookups = async (): Promise<number> => {
      lookupCount = 0;
      expect((await tokens.find(hash))?.agent_id).toBe(agent.agent_id);
      return lookupCount;
    };
    expect([await countLookups(), await countLookups()]).toEqual([1, 0]);
    topics.publish("agent_gone", agent.agent_id, {});
    expect([await countLookups(), await countLookups()]).toEqual([1, 0]);
    clock.advance(1_001);
    expect([await countLookups(), await countLookups()]).toEqual([1, 0]);

    const { part = -1 } = (await store.get(findAgentByToken({ token_hash: hash }))) ?? {};
    shards.drop([part]);
    expect([await countLookups(), await countLookups()]).toEqual([1, 1]);
    shards.add([part]);
    expect([await countLookups(), await countLookups()]).toEqual([1, 0]);
    shards.drop([part]);
    shards.add([part]);
    expect([await countLookups(), await countLookups()]).toEqual([1, 0]);

    // The token is revoked during the lookup.
    clock.advance(1_001);
    const lookup = tokens.find(hash);
    topics.publish("agent_gone", agent.agent_id, {});
    await lookup;
    expect([await countLookups(), await countLookups()]).toEqual([1, 0]);
  },
);
