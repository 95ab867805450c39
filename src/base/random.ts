// Chance that is no secret, such as the jitter of a retry. Comes in through this door, so that tests decide how it falls; secrets and
// ids are made in ids.ts.

/** A number from 0 up to, but not including, 1. */
export type Random = () => number;

export const systemRandom: Random = () => Math.random();
