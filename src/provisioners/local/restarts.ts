// When a daemon that has died is started again. Pure.

export type Watched = {
  /** How often it has died in a row. */
  readonly deaths: number;
  /** When it was started last, in milliseconds of a monotonic clock. */
  readonly since: number;
  /** When it is started again; null while it is taken to live. */
  readonly retry_at: number | null;
};

const FIRST_MS = 500;
const CEILING_MS = 60_000;
/** One that lived this long was a good one: its death begins a new row. */
const GOOD_MS = 60_000;
/** Deaths in a row that are answered by a start: about five minutes. */
const MOST = 10;

/** What follows a death, or a start that failed, at `now`; undefined when it is given up. */
export const afterDeath = ({ deaths, since, retry_at }: Watched, now: number): Watched | undefined => {
  const wasGood = retry_at === null && now - since >= GOOD_MS;
  const row = wasGood ? 0 : deaths;
  if (row >= MOST) return undefined;
  return { deaths: row + 1, since, retry_at: now + Math.min(CEILING_MS, FIRST_MS * 2 ** row) };
};
