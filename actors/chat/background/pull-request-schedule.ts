// Schedules requests to a git host about a chat's pull request (rule PR-4): often during work, rarely when nothing changes, never when
// there is nothing to wait for. Pure.

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Results are reused for this long, so that no request makes the server call the host more often. */
export const FRESH_MS = 10_000;

type PullRequestState = { readonly pr_state: string | null; readonly pushed_at: number; readonly failures: number };

/** Returns the milliseconds from `now` until the next request, or null to wait until the chat is active again. */
export const nextCheckDelay = ({ pr_state, pushed_at, failures }: PullRequestState, now: number): number | null => {
  if (failures > 0) return Math.min(MINUTE * 2 ** Math.min(failures - 1, 10), 6 * HOUR);
  if (pr_state === "merged" || pr_state === "closed") return null;
  const idle = now - pushed_at;
  if (pr_state === null) return idle < HOUR ? 2 * MINUTE : idle < DAY ? 30 * MINUTE : null;
  if (idle < HOUR) return 2 * MINUTE;
  if (idle < DAY) return 10 * MINUTE;
  return idle < 30 * DAY ? 2 * HOUR : DAY;
};
