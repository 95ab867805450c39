// Schedules requests to a git host about a chat's pull request (rule PR-4): often during work, rarely when nothing changes, never when
// there is nothing to wait for. Pure.

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Answers are fresh for this long. No request makes the server ask the host more often. */
export const FRESH_MS = 10_000;

type Standing = { readonly pr_state: string | null; readonly pushed_at: number; readonly failures: number };

/** Milliseconds from `now` until the next request; null: only after the chat has been active again. */
export const nextCheckDelay = ({ pr_state, pushed_at, failures }: Standing, now: number): number | null => {
  if (failures > 0) return Math.min(MINUTE * 2 ** Math.min(failures - 1, 10), 6 * HOUR);
  if (pr_state === "merged" || pr_state === "closed") return null;
  const idle = now - pushed_at;
  if (pr_state === null) return idle < HOUR ? 2 * MINUTE : idle < DAY ? 30 * MINUTE : null;
  if (idle < HOUR) return 2 * MINUTE;
  if (idle < DAY) return 10 * MINUTE;
  return idle < 30 * DAY ? 2 * HOUR : DAY;
};
