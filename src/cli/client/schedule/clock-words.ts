// Parses the autostart schedule as users type it: `9:30 Mon-Fri Europe/Berlin`. Pure.
import { usageError } from "#base/usage-error.ts";

const DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"] as const;
const FULL_DAYS: Readonly<Record<(typeof DAYS)[number], string>> = {
  sun: "sunday",
  mon: "monday",
  tue: "tuesday",
  wed: "wednesday",
  thu: "thursday",
  fri: "friday",
  sat: "saturday",
};

/**
 * Returns the schedule in the API's form: `CRON_TZ=<zone> <minute> <hour> * * <days>`. `words` are a time of day, optionally followed by
 * days (default: every day) and a time zone (default: `zone`), in this order; or a single word that already is a schedule. Throws
 * UsageError.
 */
export const parseSchedule = (words: readonly string[], zone: string): string => {
  const [first = "", ...rest] = words;
  if (first.startsWith("CRON_TZ=") || first.includes(" ")) {
    if (rest[0] !== undefined) throw usageError(rest[0], "unexpected argument");
    return first;
  }
  const [, hour, minute = "0", amOrPm] = /^(\d{1,2})(?::(\d{2}))?(am|pm)?$/i.exec(first) ?? [];
  const hours = toHours(Number(hour), amOrPm?.toLowerCase());
  if (hours === undefined || Number(minute) > 59) throw usageError(first || "TIME", "expected a time such as 9:30");
  const isZone = (word: string): boolean => word.includes("/") || word === "UTC";
  const days = rest[0] !== undefined && !isZone(rest[0]) ? parseDays(rest[0]) : "*";
  const [timeZone = zone, more] = days === "*" && (rest[0] === undefined || isZone(rest[0])) ? rest : rest.slice(1);
  if (more !== undefined) throw usageError(more, "unexpected argument");
  return `CRON_TZ=${timeZone} ${Number(minute)} ${hours} * * ${days}`;
};

const toHours = (hour: number, amOrPm: string | undefined): number | undefined => {
  if (amOrPm === undefined) return hour <= 23 ? hour : undefined;
  if (!(hour >= 1 && hour <= 12)) return undefined;
  return (hour % 12) + (amOrPm === "pm" ? 12 : 0);
};

/** Parses `Mon-Fri`, `sat,sun`, `Fri-Mon` (across the end of the week) and `*`. */
const parseDays = (text: string): string => {
  if (text === "*") return text;
  const parseDay = (name: string): number => {
    const day = DAYS.findIndex((one) => name.length >= 3 && FULL_DAYS[one]?.startsWith(name.toLowerCase()));
    if (day < 0) throw usageError(text, `"${name}" is not a day. Write days such as Mon-Fri or Sat,Sun`);
    return day;
  };
  const days = text.split(",").flatMap((part) => {
    const [first = 0, last = first, more] = part.split("-").map(parseDay);
    if (more !== undefined)
      throw usageError(text, `"${part}" has more than two days. Write days such as Mon-Fri or Sat,Sun`);
    const count = ((last - first + 7) % 7) + 1;
    return Array.from({ length: count }, (_, i) => (first + i) % 7);
  });
  return formatDays([...new Set(days)].sort());
};

/** Formats sorted weekday numbers for cron: runs of three or more as a range. */
const formatDays = (days: readonly number[]): string => {
  if (days.length === 7) return "*";
  const runs: number[][] = [];
  for (const day of days) {
    const run = runs.at(-1);
    if (run && run.at(-1) === day - 1) run.push(day);
    else runs.push([day]);
  }
  return runs.map((run) => (run.length > 2 ? `${run[0]}-${run.at(-1)}` : run.join(","))).join(",");
};
