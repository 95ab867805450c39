// The assignment of shards: nodes join, die and pause at random, and the rules are checked after each step. An error message contains the
// seed.
import { expect, test } from "bun:test";
import { SHARD_COUNT } from "#base/shards.ts";
import { type HeldShard, type Move, planMoves } from "#db/pg/shards/assignment.ts";
import { randomFrom } from "#test/support/random.ts";

const SEED = Number(Bun.env.SLIPWAY_TEST_SEED ?? Date.now() % 1_000_000);
const RUNS = 200;
const STEPS = 30;

const countPerNode = (held: readonly HeldShard[], living: readonly string[]): number[] =>
  living.map((node) => held.filter((one) => one.node === node).length).sort((a, b) => b - a);

/** Returns the maximum number of shards that can stay at their node, computed from the rule and not with the algorithm. */
const maxUnmoved = (held: readonly HeldShard[], living: readonly string[]): number => {
  const [least, over] = [Math.floor(held.length / living.length), held.length % living.length];
  return countPerNode(held, living).reduce(
    (sum, count, index) => sum + Math.min(count, least + (index < over ? 1 : 0)),
    0,
  );
};

const applyMoves = (held: readonly HeldShard[], moves: readonly Move[]): HeldShard[] => {
  const to = new Map(moves.map((move) => [move.part, move.to]));
  return held.map((one, shard) => {
    const node = to.get(shard);
    return node === undefined ? one : { node, isNew: true };
  });
};

test(`[CP-4] all nodes get equal shares, the fewest shards move, and none moves twice within a lease (seed ${SEED})`, () => {
  const random = randomFrom(SEED);
  const randomBelow = (n: number): number => Math.floor(random() * n);
  for (let run = 0; run < RUNS; run++) {
    let held: HeldShard[] = Array.from({ length: run % 2 === 0 ? SHARD_COUNT : 1 + randomBelow(40) }, () => ({
      node: "",
    }));
    const living: string[] = [];
    let joined = 0;
    for (let step = 0; step < STEPS; step++) {
      const chance = random();
      if (living.length === 0 || (chance < 0.4 && living.length < 12)) living.push(`node-${run}-${joined++}`);
      else if (chance < 0.6) living.splice(randomBelow(living.length), 1);
      else if (chance < 0.9) held = held.map(({ node }) => ({ node }));
      if (living.length === 0) {
        expect(planMoves(held, living)).toEqual([]);
        continue;
      }
      const shuffled = [...living].sort(() => random() - 0.5);
      const moves = planMoves(held, shuffled);
      const context = `seed ${SEED}, run ${run}, step ${step}`;
      expect(planMoves(held, living), context).toEqual(moves);
      expect(new Set(moves.map(({ part }) => part)).size, context).toBe(moves.length);
      expect(
        moves.filter(({ part, to }) => !living.includes(to) || held[part]?.node === to),
        context,
      ).toEqual([]);
      // A shard that has just moved moves again only if its node is dead. A shard without an owner always moves.
      const isOwnerAlive = ({ part }: Move): boolean => living.includes(held[part]?.node ?? "");
      expect(
        moves.filter((move) => held[move.part]?.isNew && isOwnerAlive(move)),
        context,
      ).toEqual([]);
      const next = applyMoves(held, moves);
      expect(
        next.filter(({ node }) => !living.includes(node)),
        context,
      ).toEqual([]);
      if (!held.some(({ node, isNew }) => isNew && living.includes(node))) {
        const counts = countPerNode(next, living);
        expect((counts[0] ?? 0) - (counts.at(-1) ?? 0), context).toBeLessThan(2);
        expect(moves.length, context).toBe(held.length - maxUnmoved(held, living));
      }
      expect(planMoves(next, living), `${context}: second plan`).toEqual([]);
      const settled = next.map(({ node }) => ({ node }));
      const counts = countPerNode(applyMoves(settled, planMoves(settled, living)), living);
      expect((counts[0] ?? 0) - (counts.at(-1) ?? 0), `${context}: after the moves`).toBeLessThan(2);
      held = next;
    }
  }
});
