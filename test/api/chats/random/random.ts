// A small seeded random generator.
import { randomFrom } from "#test/support/random.ts";

export const createRandom = (seed: number) => {
  const next = randomFrom(seed);
  const below = (n: number): number => Math.floor(next() * n);
  return { below, pick: <T>(list: readonly T[]): T => list[below(list.length)] as T };
};
export type Random = ReturnType<typeof createRandom>;
