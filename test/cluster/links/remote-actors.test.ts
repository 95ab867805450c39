// Messages to actors on either of two nodes that divide the shards, over a real link, while shards move.
import { afterEach, expect, test } from "bun:test";
import { Actor } from "#actors/runtime/actor.ts";
import type { Directory } from "#actors/runtime/directory.ts";
import { systemClock } from "#base/clock.ts";
import { getCurrentOrigin, withOrigin } from "#base/origin.ts";
import type { OtherNode, Shards } from "#base/shards.ts";
import type { Store } from "#db/engine/store.ts";
import { ShardIndex } from "#db/shard-index.ts";
import { createSharedLocation } from "#src/cluster/location.ts";
import { createLinkedNode, type LinkedNode } from "#test/support/cluster/linked-node.ts";

/** Which node has which shard; unowned shards are not listed. */
type ShardOwners = Map<number, string>;

const openNodes: LinkedNode[] = [];
afterEach(() => {
  for (const node of openNodes.splice(0)) node[Symbol.dispose]();
});

class Notes extends Actor<readonly string[]> {
  readonly #node: string;
  constructor(id: string, node: string) {
    super(id, {} as Store);
    this.#node = node;
  }
  protected toPart(): undefined {}
  protected load(): Promise<readonly string[]> {
    return Promise.resolve([]);
  }
  note({ text }: { text: string }): Promise<{ node: string; notes: readonly string[]; user: string | undefined }> {
    return this.handle((state) => {
      const notes = [...state, text];
      return { state: notes, reply: { node: this.#node, notes, user: getCurrentOrigin()?.().user_id ?? undefined } };
    });
  }
}

/** Creates a store that knows the shards of these IDs. */
const makeReadStore = (rows: ReadonlyMap<string, number>): Pick<Store, "get"> => ({
  get: async ({ params }) => {
    const shard = rows.get(String(params[0]));
    return (shard === undefined ? undefined : { part: shard }) as never;
  },
});

const openCluster = (names: readonly string[], owners: ShardOwners, rows: ReadonlyMap<string, number>) => {
  const nodes = new Map(names.map((name) => [name, createLinkedNode(name)]));
  openNodes.push(...nodes.values());
  return names.map((name) => {
    const node = nodes.get(name) as LinkedNode;
    const findOtherNode = (shard: number): OtherNode | undefined => nodes.get(owners.get(shard) ?? "")?.nodeRef;
    const shards: Shards = {
      has: (shard) => owners.get(shard) === name,
      isFirst: false,
      arrivals: 0,
      nodeOf: (shard) => (owners.get(shard) === name ? undefined : findOtherNode(shard)),
    };
    const index = new ShardIndex(makeReadStore(rows));
    const location = createSharedLocation({ clock: systemClock, shards, index, links: node.links });
    const chats = location.openDirectory("chat", (id) => new Notes(id, name));
    return { node, chats };
  }) as [{ node: LinkedNode; chats: Directory<Notes> }, { node: LinkedNode; chats: Directory<Notes> }];
};

test("[CP-33] any node sends a message to the node of its actor's shard, in order, and on behalf of the same user", async () => {
  const owners: ShardOwners = new Map([
    [1, "a"],
    [2, "b"],
  ]);
  const [a, b] = openCluster(
    ["a", "b"],
    owners,
    new Map([
      ["one", 1],
      ["two", 2],
    ]),
  );
  const origin = { user_id: "someone", ip: null, user_agent: "", request_id: "request" };
  const reply = await withOrigin(
    () => origin,
    () => a.chats.ask("two", "note", { text: "first" }),
  );
  expect(reply).toEqual({ node: "b", notes: ["first"], user: "someone" });
  const replies = Array.from({ length: 50 }, (_, n) => a.chats.ask("two", "note", { text: `${n}` }));
  const lastReply = (await Promise.all(replies)).at(-1);
  expect(lastReply?.notes).toEqual(["first", ...Array.from({ length: 50 }, (_, n) => `${n}`)]);
  expect((await b.chats.ask("one", "note", { text: "x" })).node).toBe("a");
  expect([a.chats.size, b.chats.size]).toEqual([1, 1]);
});

test("[CP-33] an object is created on its shard's node", async () => {
  const [a] = openCluster(
    ["a", "b"],
    new Map([
      [1, "a"],
      [2, "b"],
    ]),
    new Map(),
  );
  a.chats.expect("new", 2);
  expect((await a.chats.ask("new", "note", { text: "made" })).node).toBe("b");
  // For an ID that does not exist, any node answers.
  expect((await a.chats.ask("nothing", "note", { text: "made" })).node).toBe("a");
});

test("[CP-33] a message waits while its shard moves, then goes directly to the new owner", async () => {
  const owners: ShardOwners = new Map([[2, "b"]]);
  const [a, b] = openCluster(["a", "b"], owners, new Map([["two", 2]]));
  expect((await a.chats.ask("two", "note", { text: "1" })).node).toBe("b");
  owners.delete(2);
  const waiting = a.chats.ask("two", "note", { text: "2" });
  owners.set(2, "a");
  expect((await waiting).node).toBe("a");
  expect((await b.chats.ask("two", "note", { text: "3" })).notes).toEqual(["2", "3"]);
  // b still considers a the owner. a no longer owns the shard and rejects the message; b retries at the new owner.
  const lateMessage = b.chats.ask("two", "note", { text: "4" });
  owners.set(2, "b");
  expect((await lateMessage).node).toBe("b");
});
