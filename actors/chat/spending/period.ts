// The periods of spend limits: days, weeks from Monday, months, all in UTC. Pure.
import type { UsagePeriod } from "#schema/chats/usage-limit.ts";

const DAY_MS = 86_400_000;

/** Returns the period that contains `now`, in milliseconds since 1970. `to` is exclusive. */
export const toPeriod = (period: UsagePeriod, now: number): { readonly from: number; readonly to: number } => {
  const date = new Date(now);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  if (period === "month") return { from: Date.UTC(year, month), to: Date.UTC(year, month + 1) };
  const day = Date.UTC(year, month, date.getUTCDate());
  if (period === "day") return { from: day, to: day + DAY_MS };
  const monday = day - ((date.getUTCDay() + 6) % 7) * DAY_MS;
  return { from: monday, to: monday + 7 * DAY_MS };
};
