// Schedules requests to a git host about a chat's pull request (rule PR-4): often during work, rarely when nothing changes, never when
// there is nothing to wait for. Pure.

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Results are reused for this long, so that no request makes the server call the host more often. */
export const FRESH_MS = 10_000;

type PullRequestState = { readonly pr_state: string | null; readonly pushed_at: number; readonly failures: number };

/** Returns the milliseconds from `now` until the next request, or null to wait until the chat is active again. */
export const nextCheckDelay = ({ pr_state, pushed_at, failures }: PullRequestState, now: number): number | null => {
  if (failures > 0) return Math.min(MINUTE_MS * 2 ** Math.min(failures - 1, 10), 6 * HOUR_MS);
  if (pr_state === "merged" || pr_state === "closed") return null;
  const idleMs = now - pushed_at;
  if (pr_state === null) return idleMs < HOUR_MS ? 2 * MINUTE_MS : idleMs < DAY_MS ? 30 * MINUTE_MS : null;
  if (idleMs < HOUR_MS) return 2 * MINUTE_MS;
  if (idleMs < DAY_MS) return 10 * MINUTE_MS;
  return idleMs < 30 * DAY_MS ? 2 * HOUR_MS : DAY_MS;
};
