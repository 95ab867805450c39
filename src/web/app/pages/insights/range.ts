// The period of a report: a number of last days, or from one day to another, in the viewer's time zone or UTC. Pure.

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
export const CHOICES = [7, 30, 90] as const;
const MAX_DAYS = 366;
/** Tolerated difference between the viewer's clock and the server's. */
const CLOCK_SKEW_MS = 60_000;

export type RangeQuery = {
  readonly days?: string | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  readonly zone?: string | undefined;
};

export type DateRange = {
  /** Number of days, including today. */
  readonly days: number;
  /** First and last day, YYYY-MM-DD. */
  readonly first: string;
  readonly last: string;
  readonly isUtc: boolean;
  /** The query for the API. */
  readonly query: { readonly start_time: string; readonly end_time: string };
  /** The preceding period of the same length, for comparison. */
  readonly previousQuery: { readonly start_time: string; readonly end_time: string };
};

const padTwo = (value: number): string => String(value).padStart(2, "0");

const formatOffset = (minutes: number): string => {
  const absolute = Math.abs(minutes);
  return `${minutes < 0 ? "-" : "+"}${padTwo(Math.floor(absolute / 60))}:${padTwo(absolute % 60)}`;
};

const isDate = (text: string | undefined): text is string =>
  text !== undefined && /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(Date.parse(text));

/**
 * Returns the range. `offsetMinutes` is the number of minutes by which the viewer's clock is ahead of UTC. Invalid input
 * means 30 days.
 */
export const parseRange = (requested: RangeQuery, nowMs: number, offsetMinutes: number): DateRange => {
  const isUtc = requested.zone === "utc";
  const minutes = isUtc ? 0 : offsetMinutes;
  const offsetMs = minutes * 60_000;
  // The viewer's local time, represented as UTC.
  const localNow = nowMs - CLOCK_SKEW_MS + offsetMs;
  const today = Math.floor(localNow / DAY_MS) * DAY_MS;
  const requestedDays =
    isDate(requested.from) && isDate(requested.to) ? [Date.parse(requested.from), Date.parse(requested.to)] : undefined;
  const [from = 0, to = 0] =
    requestedDays && (requestedDays[0] ?? 0) <= (requestedDays[1] ?? 0) && (requestedDays[0] ?? 0) <= today
      ? [
          Math.max(requestedDays[0] ?? 0, (requestedDays[1] ?? 0) - (MAX_DAYS - 1) * DAY_MS),
          Math.min(requestedDays[1] ?? 0, today),
        ]
      : [today - (parseDays(requested.days) - 1) * DAY_MS, today];
  const end = to === today ? (Math.floor(localNow / HOUR_MS) + 1) * HOUR_MS : to + DAY_MS;
  const formatTime = (timeMs: number): string =>
    `${new Date(timeMs).toISOString().slice(0, 19)}${formatOffset(minutes)}`;
  const days = (to - from) / DAY_MS + 1;
  return {
    days,
    first: new Date(from).toISOString().slice(0, 10),
    last: new Date(to).toISOString().slice(0, 10),
    isUtc,
    query: { start_time: formatTime(from), end_time: formatTime(end) },
    previousQuery: { start_time: formatTime(from - days * DAY_MS), end_time: formatTime(from) },
  };
};

const parseDays = (text: string | undefined): number => {
  const days = Number(text);
  return Number.isInteger(days) && days > 0 && days <= MAX_DAYS ? days : 30;
};

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const WEEKDAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/** Formats 2026-11-04 as 4 Nov. */
export const formatDay = (day: string): string => `${Number(day.slice(8))} ${MONTHS[Number(day.slice(5, 7)) - 1]}`;

/** Formats 2026-11-04 as Wed 4 Nov. */
export const formatDayAndWeekday = (day: string): string => `${WEEKDAYS[new Date(day).getUTCDay()]} ${formatDay(day)}`;

/** Returns the days of a range in order. */
export const listDays = ({ first, days }: DateRange): string[] =>
  Array.from({ length: days }, (_, index) => new Date(Date.parse(first) + index * DAY_MS).toISOString().slice(0, 10));
