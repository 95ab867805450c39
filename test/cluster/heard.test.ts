// Events on one of several active nodes reach the others: two contexts, each with its own store, on a real PostgreSQL.
import { expect } from "bun:test";
import { systemClock } from "#base/clock.ts";
import { ShardsMember } from "#db/pg/shards/member.ts";
import type { PgStore } from "#db/pg/store.ts";
import type { Context } from "#src/context/context.ts";
import { openContext } from "#src/context/open.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { createDatabase } from "#test/support/postgres.ts";
import { tempDirectory, testConfig } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";

type Node = { readonly member: ShardsMember; readonly ctx: Context; readonly store: PgStore };

const openNode = async (url: string, id: string, directory: string): Promise<Node> => {
  const member = await ShardsMember.join({
    url,
    id,
    version: "1",
    lease_ms: 6_000,
    clock: systemClock,
    fatal: () => {},
  });
  const store = member.openStore();
  const config = testConfig(directory, { env: { SLIPWAY_ENCRYPTION_KEY: "5e".repeat(32) } });
  const ctx = await openContext({ config, store, shards: member });
  return { member, ctx, store };
};

const openNodes = async () => {
  const database = await createDatabase({ empty: true });
  const directories = [tempDirectory(), tempDirectory()] as const;
  const first = await openNode(database.url, "a:1", directories[0].path);
  const second = await openNode(database.url, "b:1", directories[1].path);
  const closed = new Set<Node>();
  const close = async (node: Node): Promise<void> => {
    if (closed.has(node)) return;
    closed.add(node);
    const { ctx, store, member } = node;
    await ctx.connections.stop();
    await store.close();
    await member.leaveCluster();
  };
  return {
    first,
    second,
    close,
    async [Symbol.asyncDispose]() {
      for (const node of [second, first]) await close(node);
      await database.remove();
      for (const directory of directories) directory[Symbol.dispose]();
    },
  };
};

/** Records which events of a kind a node receives. */
const listenTo = ({ ctx }: Node, kind: "owner_chats" | "missed") => {
  const ids: string[] = [];
  ctx.topics.subscribeAll(kind, (id) => ids.push(id));
  return ids;
};

/** Resolves when each node receives the other's events. */
const waitForMutualEvents = async ({ first, second }: { first: Node; second: Node }): Promise<void> => {
  const [firstEvents, secondEvents] = [listenTo(first, "owner_chats"), listenTo(second, "owner_chats")];
  await until(() => {
    for (const { ctx } of [first, second]) ctx.topics.publish("owner_chats", ctx.store.epoch.toString(), CREATED);
    return firstEvents.includes(second.store.epoch.toString()) && secondEvents.includes(first.store.epoch.toString());
  });
};

/** Returns false for the events that check whether the nodes are connected. */
const isTestEvent = (id: string): boolean => !/^\d+$/.test(id);

const CREATED = { kind: "created", chat_id: "chat" } as const;

testNeeding(
  [needs.postgres],
  "[CP-52] every other node receives an event exactly once, and it is not echoed to its sender",
  async () => {
    await using nodes = await openNodes();
    const { first, second } = nodes;
    await waitForMutualEvents(nodes);
    const [firstEvents, secondEvents] = [listenTo(first, "owner_chats"), listenTo(second, "owner_chats")];
    const missed = listenTo(second, "missed");
    const users = Array.from({ length: 300 }, (_, i) => `user-${i}`);
    for (const id of users) first.ctx.topics.publish("owner_chats", id, { kind: "created", chat_id: `chat of ${id}` });
    await until(() => secondEvents.filter(isTestEvent).length >= users.length);
    second.ctx.topics.publish("owner_chats", "last", { kind: "created", chat_id: "chat" });
    await until(() => firstEvents.includes("last"));
    expect(secondEvents.filter(isTestEvent)).toEqual([...users, "last"]);
    expect(firstEvents.filter(isTestEvent)).toEqual([...users, "last"]);
    expect(missed).toEqual([]);
  },
);

testNeeding(
  [needs.postgres],
  "[CP-52] after the last event of a node that leaves, the other nodes learn once that they may have missed events",
  async () => {
    await using nodes = await openNodes();
    const { first, second } = nodes;
    await waitForMutualEvents(nodes);
    const [received, missed] = [listenTo(first, "owner_chats"), listenTo(first, "missed")];
    second.ctx.topics.publish("owner_chats", "user", { kind: "created", chat_id: "chat" });
    await until(() => received.includes("user"));
    await nodes.close(second);
    await until(() => missed.length > 0);
    expect(missed).toEqual([""]);
  },
);

testNeeding([needs.postgres], "[CP-53] model settings changed on one node apply on the others", async () => {
  await using nodes = await openNodes();
  const { first, second } = nodes;
  const { id: provider_id } = await first.ctx.modelSettings.addProvider({
    provider: "openai",
    display_name: "One",
    base_url: "",
    enabled: true,
    api_key: "key",
  });
  const { id } = await first.ctx.modelSettings.addModel({
    provider_id,
    model: "large",
    display_name: "Large",
    enabled: true,
    is_default: true,
    context_limit: 1_000,
    compression_threshold: null,
    model_config: {},
  });
  await until(() => second.ctx.models.resolve(null)?.id === id);
  await first.ctx.modelSettings.removeModel(id);
  await until(() => second.ctx.models.resolve(id) === undefined);
  const names = [{ name: "fast", targets: [{ provider_id, model: "small" }] }];
  await first.ctx.modelSettings.changeGateway({ enabled: true, in_workspaces: true, names, default_names: {} });
  await until(async () => (await second.ctx.modelSettings.catalog()).settings.enabled);
  expect((await second.ctx.modelSettings.catalog()).settings.names).toEqual(names);
  await first.ctx.modelSettings.removeProvider(provider_id);
  await until(async () => (await second.ctx.modelSettings.catalog()).providers.length === 0);
});
