// The assignment of shards: nodes join, die and pause at random, and the rules are checked after each step. An error message contains the
// seed.
import { expect, test } from "bun:test";
import { SHARD_COUNT } from "#base/shards.ts";
import { type HeldShard, type Move, planMoves } from "#db/pg/shards/assignment.ts";
import { randomFrom } from "#test/support/random.ts";

const SEED = Number(Bun.env.SLIPWAY_TEST_SEED ?? Date.now() % 1_000_000);
const RUNS = 200;
const STEPS = 30;

const countPerNode = (shards: readonly HeldShard[], liveNodes: readonly string[]): number[] =>
  liveNodes.map((node) => shards.filter((shard) => shard.node === node).length).sort((a, b) => b - a);

/** Returns the maximum number of shards that can stay at their node, computed from the rule and not with the algorithm. */
const maxUnmoved = (shards: readonly HeldShard[], liveNodes: readonly string[]): number => {
  const [minimum, remainder] = [Math.floor(shards.length / liveNodes.length), shards.length % liveNodes.length];
  return countPerNode(shards, liveNodes).reduce(
    (sum, count, index) => sum + Math.min(count, minimum + (index < remainder ? 1 : 0)),
    0,
  );
};

const applyMoves = (shards: readonly HeldShard[], moves: readonly Move[]): HeldShard[] => {
  const newNodes = new Map(moves.map((move) => [move.part, move.to]));
  return shards.map((shard, index) => {
    const node = newNodes.get(index);
    return node === undefined ? shard : { node, isNew: true };
  });
};

test(`[CP-4] all nodes get equal shares, the fewest shards move, and none moves twice within a lease (seed ${SEED})`, () => {
  const random = randomFrom(SEED);
  const randomBelow = (n: number): number => Math.floor(random() * n);
  for (let run = 0; run < RUNS; run++) {
    let shards: HeldShard[] = Array.from({ length: run % 2 === 0 ? SHARD_COUNT : 1 + randomBelow(40) }, () => ({
      node: "",
    }));
    const liveNodes: string[] = [];
    let joinCount = 0;
    for (let step = 0; step < STEPS; step++) {
      const chance = random();
      if (liveNodes.length === 0 || (chance < 0.4 && liveNodes.length < 12))
        liveNodes.push(`node-${run}-${joinCount++}`);
      else if (chance < 0.6) liveNodes.splice(randomBelow(liveNodes.length), 1);
      else if (chance < 0.9) shards = shards.map(({ node }) => ({ node }));
      if (liveNodes.length === 0) {
        expect(planMoves(shards, liveNodes)).toEqual([]);
        continue;
      }
      const shuffled = [...liveNodes].sort(() => random() - 0.5);
      const moves = planMoves(shards, shuffled);
      const context = `seed ${SEED}, run ${run}, step ${step}`;
      expect(planMoves(shards, liveNodes), context).toEqual(moves);
      expect(new Set(moves.map(({ part }) => part)).size, context).toBe(moves.length);
      expect(
        moves.filter(({ part, to }) => !liveNodes.includes(to) || shards[part]?.node === to),
        context,
      ).toEqual([]);
      // A shard that has just moved moves again only if its node is dead. A shard without an owner always moves.
      const isOwnerAlive = ({ part }: Move): boolean => liveNodes.includes(shards[part]?.node ?? "");
      expect(
        moves.filter((move) => shards[move.part]?.isNew && isOwnerAlive(move)),
        context,
      ).toEqual([]);
      const afterMoves = applyMoves(shards, moves);
      expect(
        afterMoves.filter(({ node }) => !liveNodes.includes(node)),
        context,
      ).toEqual([]);
      if (!shards.some(({ node, isNew }) => isNew && liveNodes.includes(node))) {
        const counts = countPerNode(afterMoves, liveNodes);
        expect((counts[0] ?? 0) - (counts.at(-1) ?? 0), context).toBeLessThan(2);
        expect(moves.length, context).toBe(shards.length - maxUnmoved(shards, liveNodes));
      }
      expect(planMoves(afterMoves, liveNodes), `${context}: second plan`).toEqual([]);
      const settled = afterMoves.map(({ node }) => ({ node }));
      const counts = countPerNode(applyMoves(settled, planMoves(settled, liveNodes)), liveNodes);
      expect((counts[0] ?? 0) - (counts.at(-1) ?? 0), `${context}: after the moves`).toBeLessThan(2);
      shards = afterMoves;
    }
  }
});
