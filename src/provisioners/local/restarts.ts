// Computes when a daemon that has died is restarted. Pure.

export type Watched = {
  /** Number of deaths in a row. */
  readonly deaths: number;
  /** When it was last started, in milliseconds of a monotonic clock. */
  readonly since: number;
  /** When it is restarted; null while it is considered alive. */
  readonly retry_at: number | null;
};

const FIRST_MS = 500;
const CEILING_MS = 60_000;
/** The death of a daemon that lived this long starts a new series. */
const GOOD_MS = 60_000;
/** Maximum number of restarts in a row, which takes about five minutes. */
const MOST = 10;

/** Returns the state after a death or a failed start at `now`; undefined when restarts are given up. */
export const scheduleRestart = ({ deaths, since, retry_at }: Watched, now: number): Watched | undefined => {
  const wasGood = retry_at === null && now - since >= GOOD_MS;
  const row = wasGood ? 0 : deaths;
  if (row >= MOST) return undefined;
  return { deaths: row + 1, since, retry_at: now + Math.min(CEILING_MS, FIRST_MS * 2 ** row) };
};
