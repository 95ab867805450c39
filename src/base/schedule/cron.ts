// Parses schedules such as `CRON_TZ=Europe/Paris 30 9 * * 1-5`: a time on days of the week in a time zone. Used for autostart
// (facts/platform 2.7). Rejects days of the month, months, words such as @daily, and the zone Local. Bun.cron has no time zone support.
import { Cron } from "croner";
import { WEEKDAYS, type Weekday } from "./weekdays.ts";

type ParsedSchedule = {
  readonly cron: Cron;
  readonly midnight: Cron;
  readonly weekdayFormat: Intl.DateTimeFormat;
  readonly dateFormat: Intl.DateTimeFormat;
};

/** Parsed schedules, because parsing takes longer than evaluating. The oldest are evicted first. */
const cache = new Map<string, ParsedSchedule>();
const MAX_CACHED_SCHEDULES = 256;

/** Returns why the text is not a valid schedule; undefined if it is. */
export const findScheduleProblem = (text: string): string | undefined => {
  const { zone, fields } = splitZone(text);
  if (!isZone(zone)) return `"${zone}" is not a known time zone`;
  if (fields.length !== 5) return "must have the five fields minute, hour, day of month, month and day of week";
  if (fields[2] !== "*" || fields[3] !== "*") return "the day of month and the month must be *";
  const hasPlainFields = /^[\d*,/-]+$/.test(`${fields[0]}${fields[1]}`) && /^[\da-z*,/-]+$/i.test(fields[4] ?? "");
  if (!hasPlainFields) return CRON_PROBLEM;
  try {
    const cron = new Cron(fields.join(" "), { timezone: zone, paused: true });
    return cron.nextRun(new Date(0)) ? undefined : "never comes";
  } catch {
    return CRON_PROBLEM;
  }
};

const CRON_PROBLEM = "is not a schedule such as CRON_TZ=Europe/Paris 30 9 * * 1-5";

/**
 * Returns the first time after `after` that matches the schedule and falls on one of `days`, both in the schedule's zone, in milliseconds
 * since 1970; undefined if no time matches. A time that a clock change skips occurs right after the change. A time that occurs twice
 * matches only once, unless the schedule matches every hour (rule TI-2).
 */
export const findNextTime = (text: string, after: number, days: readonly string[] = WEEKDAYS): number | undefined => {
  const { cron, midnight } = parseSchedule(text);
  let match = cron.nextRun(new Date(after));
  // Skips each day that is not allowed; after a week, there is no match.
  for (let remainingDays = 8; match && remainingDays > 0; remainingDays--) {
    if (days.includes(toWeekday(text, match.getTime()))) return match.getTime();
    const day = midnight.nextRun(match);
    match = day && cron.nextRun(new Date(day.getTime() - 1000));
  }
  return undefined;
};

/** Returns the day of the week of a time in the schedule's zone. */
export const toWeekday = (text: string, at: number): Weekday =>
  parseSchedule(text).weekdayFormat.format(new Date(at)).toLowerCase() as Weekday;

/** Returns the day of a time in the schedule's zone, in days since 1970-01-01. */
export const toDayNumber = (text: string, at: number): number => {
  const [month = 1, day = 1, year = 1970] = parseSchedule(text).dateFormat.format(new Date(at)).split("/").map(Number);
  return Date.UTC(year, month - 1, day) / 86_400_000;
};

/** Returns the only time of day of a daily schedule, and its zone; undefined if it has several times of day, or not all days. */
export const findDailyTime = (text: string): { hour: number; minute: number; zone: string } | undefined => {
  if (findScheduleProblem(text) !== undefined) return undefined;
  const { zone, fields } = splitZone(text);
  const [minute = "", hour = "", , , days] = fields;
  if (!/^\d+$/.test(minute) || !/^\d+$/.test(hour) || days !== "*") return undefined;
  return { hour: Number(hour), minute: Number(minute), zone };
};

const parseSchedule = (text: string): ParsedSchedule => {
  const cached = cache.get(text);
  if (cached) return cached;
  const { zone, fields } = splitZone(text);
  const created = {
    cron: new Cron(fields.join(" "), { timezone: zone, paused: true }),
    midnight: new Cron("0 0 * * *", { timezone: zone, paused: true }),
    weekdayFormat: new Intl.DateTimeFormat("en-US", { weekday: "long", timeZone: zone }),
    dateFormat: new Intl.DateTimeFormat("en-US", { year: "numeric", month: "numeric", day: "numeric", timeZone: zone }),
  };
  cache.set(text, created);
  const [oldest] = cache.keys();
  if (cache.size > MAX_CACHED_SCHEDULES && oldest !== undefined) cache.delete(oldest);
  return created;
};

const SCRIPT_CRON_HINT = "is not a schedule such as 0 9 * * 1-5, or with seconds first 0 0 9 * * 1-5";

/** Returns why this cron text is invalid for a script; undefined if it is valid. Five fields begin with the minute, six with the second. */
export const findScriptCronProblem = (text: string): string | undefined => {
  try {
    const fields = text.trim().split(/\s+/).length;
    if (!text.startsWith("@") && fields !== 5 && fields !== 6) return SCRIPT_CRON_HINT;
    return new Cron(text, { paused: true, legacyMode: true }).nextRun(new Date(0)) ? undefined : "never comes";
  } catch {
    return SCRIPT_CRON_HINT;
  }
};

/** Returns whether the minute of `now` matches five cron fields in this time zone. False for invalid text or zones. */
export const matchesCron = (text: string, timezone: string, now: number): boolean => {
  try {
    return new Cron(text, { paused: true, legacyMode: true, timezone }).match(new Date(now - (now % 60_000)));
  } catch {
    return false;
  }
};

/**
 * Returns the next time of a script's cron text after `now`, in milliseconds since 1970; undefined if none exists. Throws for invalid
 * text.
 */
export const findNextScriptTime = (text: string, now: number): number | undefined =>
  new Cron(text, { paused: true, legacyMode: true }).nextRun(new Date(now))?.getTime();

const splitZone = (text: string): { zone: string; fields: string[] } => {
  const match = /^(?:CRON_TZ=(\S*)\s+)?(.*)$/s.exec(text.trim());
  return { zone: match?.[1] ?? "UTC", fields: (match?.[2] ?? "").split(/\s+/) };
};

/** Returns whether this is a time zone name; an offset is not. */
export const isZone = (zone: string): boolean => {
  // An offset such as +02:00 has no daylight saving time.
  if (!/^[A-Za-z]/.test(zone) || zone.toLowerCase() === "local") return false;
  try {
    new Intl.DateTimeFormat("en", { timeZone: zone });
    return true;
  } catch {
    return false;
  }
};
