// What a node remembers of agents' tokens: for a moment, and only of parts that it has, since it is the first to hear when one of those ends.
import { afterAll, beforeAll, expect, spyOn, test } from "bun:test";
import { sha256 } from "#base/ids.ts";
import { findAgentByToken } from "#db/agents/tokens.ts";
import { AgentTokens } from "#src/api/http/agent-tokens.ts";
import { MovableParts } from "#test/support/cluster/movable-parts.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { contextOf, seedAgent } from "#test/support/seed.ts";
import { startTestServer, type TestServer } from "#test/support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server[Symbol.asyncDispose]());

/** The tokens of a node with these parts, and how often it has looked one up. */
const tokensOf = (parts: MovableParts, clock = new ManualClock()) => {
  const { store, topics } = contextOf(server);
  const looks = spyOn(store, "get");
  const tokens = new AgentTokens({ store, topics, clock, parts });
  return { tokens, topics, looks, [Symbol.dispose]: () => looks.mockRestore() };
};

test("[CP-71] the node that has an agent's part remembers its token, until it ends or the part was another's meanwhile; no other node does", async () => {
  const agent = await seedAgent(server);
  const hash = sha256(agent.agent_token);
  const parts = new MovableParts();
  const clock = new ManualClock();
  using node = tokensOf(parts, clock);
  const looked = async (): Promise<number> => {
    node.looks.mockClear();
    expect((await node.tokens.find(hash))?.agent_id).toBe(agent.agent_id);
    return node.looks.mock.calls.length;
  };
  expect([await looked(), await looked()]).toEqual([1, 0]);
  node.topics.publish("agent_gone", agent.agent_id, {});
  expect([await looked(), await looked()]).toEqual([1, 0]);
  clock.advance(1_001);
  expect([await looked(), await looked()]).toEqual([1, 0]);

  const { part = -1 } = (await contextOf(server).store.get(findAgentByToken({ token_hash: hash }))) ?? {};
  parts.drop([part]);
  expect([await looked(), await looked()]).toEqual([1, 1]);
  parts.add([part]);
  expect([await looked(), await looked()]).toEqual([1, 0]);
  parts.drop([part]);
  parts.add([part]);
  expect([await looked(), await looked()]).toEqual([1, 0]);

  // It ends while it is read.
  clock.advance(1_001);
  const reading = node.tokens.find(hash);
  node.topics.publish("agent_gone", agent.agent_id, {});
  await reading;
  expect([await looked(), await looked()]).toEqual([1, 0]);
});
