// How long to wait before the next try: doubles with each, up to a ceiling, and half of it is left to chance so that many daemons do
// not come back at the same moment (rule DM-2).
import type { Random } from "#base/random.ts";

const FIRST_MS = 100;

/** Milliseconds before try number `failures` + 1; `failures` counts from 0. Between a half and the whole of the doubled delay. */
export const backoff = (failures: number, ceiling_ms: number, random: Random): number => {
  const whole = Math.min(ceiling_ms, FIRST_MS * 2 ** Math.min(failures, 30));
  return Math.round(whole * (0.5 + random() / 2));
};
