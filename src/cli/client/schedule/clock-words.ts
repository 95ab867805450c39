// When a workspace starts by itself, as people type it: `9:30 Mon-Fri Europe/Berlin`. Pure.
import { usageError } from "#base/usage-error.ts";

const DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/**
 * The schedule that the API takes: `CRON_TZ=<zone> <minute> <hour> * * <days>`. `words` are a time of the day, and days and a zone where
 * they are not every day and `zone`, in this order; or one word that is a schedule already. Throws UsageError.
 */
export const scheduleOf = (words: readonly string[], zone: string): string => {
  const [first = "", ...rest] = words;
  if (first.startsWith("CRON_TZ=") || first.includes(" ")) {
    if (rest[0] !== undefined) throw usageError(rest[0], "unexpected argument");
    return first;
  }
  const [, hour, minute = "0", half] = /^(\d{1,2})(?::(\d{2}))?(am|pm)?$/i.exec(first) ?? [];
  const hours = hoursOf(Number(hour), half?.toLowerCase());
  if (hours === undefined || Number(minute) > 59) throw usageError(first || "TIME", "expected a time such as 9:30");
  const isZone = (word: string): boolean => word.includes("/") || word === "UTC";
  const days = rest[0] !== undefined && !isZone(rest[0]) ? daysOf(rest[0]) : "*";
  const [place = zone, more] = days === "*" && (rest[0] === undefined || isZone(rest[0])) ? rest : rest.slice(1);
  if (more !== undefined) throw usageError(more, "unexpected argument");
  return `CRON_TZ=${place} ${Number(minute)} ${hours} * * ${days}`;
};

const hoursOf = (hour: number, half: string | undefined): number | undefined => {
  if (half === undefined) return hour <= 23 ? hour : undefined;
  if (!(hour >= 1 && hour <= 12)) return undefined;
  return (hour % 12) + (half === "pm" ? 12 : 0);
};

/** `Mon-Fri`, `sat,sun`, `*`. */
const daysOf = (text: string): string => {
  if (text === "*") return text;
  const numberOf = (name: string): number => {
    const day = DAYS.indexOf(name.slice(0, 3).toLowerCase());
    if (day < 0) throw usageError(text, "expected days such as Mon-Fri or Sat,Sun");
    return day;
  };
  return text
    .split(",")
    .map((part) => part.split("-").map(numberOf).join("-"))
    .join(",");
};
