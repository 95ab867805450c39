// Computes when a daemon that has died is restarted. Pure.

export type WatchedDaemon = {
  /** Number of deaths in a row. */
  readonly deaths: number;
  /** When the daemon was last started, in milliseconds of a monotonic clock. */
  readonly since: number;
  /** When the daemon will be restarted; null while it is considered alive. */
  readonly retry_at: number | null;
};

const INITIAL_BACKOFF_MS = 500;
const MAX_BACKOFF_MS = 60_000;
/** After a daemon has run this long, its next death counts as the first one again. */
const STABLE_AFTER_MS = 60_000;
/** Maximum number of restarts in a row. They take about five minutes. */
const MAX_RESTARTS = 10;

/** Returns the state after a death or a failed start at `now`; undefined if the daemon has died too often. */
export const scheduleRestart = ({ deaths, since, retry_at }: WatchedDaemon, now: number): WatchedDaemon | undefined => {
  const wasStable = retry_at === null && now - since >= STABLE_AFTER_MS;
  const deathsInRow = wasStable ? 0 : deaths;
  if (deathsInRow >= MAX_RESTARTS) return undefined;
  return {
    deaths: deathsInRow + 1,
    since,
    retry_at: now + Math.min(MAX_BACKOFF_MS, INITIAL_BACKOFF_MS * 2 ** deathsInRow),
  };
};
