// Linked account tokens on two nodes with one database: the first node renews them for all.
import { afterEach, expect } from "bun:test";
import type { OtherNode, Shards } from "#base/shards.ts";
import { ShardIndex } from "#db/shard-index.ts";
import { Links } from "#domain/external-auth/links.ts";
import { Client } from "#src/client.ts";
import { createSharedLocation } from "#src/cluster/location.ts";
import { FakeProvider } from "#test/api/external-auth/provider.ts";
import { link, startWith } from "#test/api/external-auth/world.ts";
import { createLinkedNode } from "#test/support/cluster/linked-node.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { getContext, seedAgent } from "#test/support/seed.ts";
import { until } from "#test/support/until.ts";

const openNodes: Disposable[] = [];
afterEach(() => {
  for (const node of openNodes.splice(0)) node[Symbol.dispose]();
});

const makeShards = (isFirst: boolean, first: () => OtherNode | undefined): Shards => ({
  isFirst,
  arrivals: 0,
  has: () => isFirst,
  nodeOf: () => (isFirst ? undefined : first()),
});

/** Opens a linked account, and the links of two nodes: the first node and another one. */
const openLinkWorld = async (provider: FakeProvider) => {
  const clock = new ManualClock();
  const server = await startWith([provider.setting("git", {})], { clock });
  const { owner_token } = await seedAgent(server);
  const owner = new Client(server.url, owner_token);
  const { id: user_id } = await owner.get<{ id: string }>("/api/v2/users/me");
  await link(owner, provider, "git");
  const { store, encryption, topics, links } = getContext(server);
  const [a, b] = [createLinkedNode("a"), createLinkedNode("b")];
  openNodes.push(a, b);
  const known: { first: OtherNode | undefined } = { first: a.nodeRef };
  const openRefreshes = (shards: Shards, node: typeof a, run: Links["refresh"]) =>
    createSharedLocation({ clock, shards, links: node.links, index: new ShardIndex(store) }).runOnFirst("refresh", run);
  openRefreshes(
    makeShards(true, () => undefined),
    a,
    (requested) => links.refresh(requested),
  );
  const git = links.provider("git");
  const { client, providers } = links;
  const second: Links = new Links({
    store,
    clock,
    encryption,
    topics,
    client,
    refreshRemotely: openRefreshes(
      makeShards(false, () => known.first),
      b,
      (requested) => second.refresh(requested),
    ),
    providers: [...providers.values()],
  });
  const fetchTokens = (count: number) =>
    Promise.all(
      Array.from({ length: count }, (_, i) => (i % 2 === 0 ? links : second).getLiveToken(user_id, git)),
    ).then((accounts) => new Set(accounts.map((account) => account?.access_token)));
  return { clock, known, nodeRef: a.nodeRef, fetchTokens, second: () => second.getLiveToken(user_id, git), server };
};

testInProcess("[CP-67] a token is refreshed once, whichever nodes need it, and each has the new one", async () => {
  using provider = new FakeProvider();
  const world = await openLinkWorld(provider);
  await using _ = world.server;
  for (const count of [2, 3]) {
    world.clock.advance(3_600_000);
    const tokens = await world.fetchTokens(12);
    expect([tokens.size, tokens.has(undefined), provider.countRequests("/token")]).toEqual([1, false, count]);
  }
});

testInProcess("[CP-67] a caller that needs a token waits while there is no first node", async () => {
  using provider = new FakeProvider();
  const world = await openLinkWorld(provider);
  await using _ = world.server;
  const before = (await world.second())?.access_token;
  world.known.first = undefined;
  world.clock.advance(3_600_000);
  const pendingLink = world.second();
  let isOver = false;
  void pendingLink.finally(() => {
    isOver = true;
  });
  world.known.first = world.nodeRef;
  await until(() => isOver || void world.clock.advance(100));
  expect((await pendingLink)?.access_token).not.toBe(before);
});
