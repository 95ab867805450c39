// When a git host is asked again about the pull request of a chat (rule PR-4): often while work continues, seldom when nothing moves, not at
// all when there is nothing to wait for. Pure.

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Answers are fresh for this long: nobody's request makes the host be asked more often. */
export const FRESH_MS = 10_000;

type Standing = { readonly pr_state: string | null; readonly pushed_at: number; readonly failures: number };

/** Milliseconds until then, from `now` on; null: only when the chat moves again. */
export const nextLook = ({ pr_state, pushed_at, failures }: Standing, now: number): number | null => {
  if (failures > 0) return Math.min(MINUTE * 2 ** Math.min(failures - 1, 10), 6 * HOUR);
  if (pr_state === "merged" || pr_state === "closed") return null;
  const idle = now - pushed_at;
  if (pr_state === null) return idle < HOUR ? 2 * MINUTE : idle < DAY ? 30 * MINUTE : null;
  if (idle < HOUR) return 2 * MINUTE;
  if (idle < DAY) return 10 * MINUTE;
  return idle < 30 * DAY ? 2 * HOUR : DAY;
};
