// Randomness that is not secret, such as retry jitter. Injected, so that tests control it; secrets and IDs are generated in ids.ts.

/** Returns a number from 0 up to, but not including, 1. */
export type Random = () => number;

export const systemRandom: Random = () => Math.random();
