// The range of a report: between two midnights, in the UTC offsets of both times (facts/platform 6.2). If the offsets differ, the time zone
// changed its clocks in between. Pure; rejects anything else with 400 and the parameter's name.
import { DAY_MS, findChangeBetween, HOUR_MS, invalidQuery } from "./zones.ts";

export type Range = {
  /** Milliseconds; `from` is included, `to` is not. */
  readonly from: number;
  readonly to: number;
  /** The range ends after now. */
  readonly open: boolean;
  /** The range ends with a full hour of today other than midnight, so its last day is incomplete. */
  readonly endsToday: boolean;
  /** When the clocks changed, and by how much they went forward; never and 0 when both times have the same offset. */
  readonly changedAt: number;
  readonly forward: number;
};

export type Interval = "day" | "week";

const TIME = /^(\d{4}-\d{2}-\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?([Zz]|[+ -]\d{2}:\d{2})$/;

type Moment = { readonly ms: number; readonly offset: number };

const parseMoment = (field: string, text: string | undefined): Moment => {
  if (text === undefined || text === "") throw invalidQuery(field, "is required");
  const [, date, hours, minutes, seconds, fraction = "0", zone = "Z"] = TIME.exec(text) ?? [];
  // An unescaped plus is decoded as a space.
  const offset = zone.replace(" ", "+").toUpperCase();
  const ms = Date.parse(`${date}T${hours}:${minutes}:${seconds}.${fraction.slice(0, 3)}${offset}`);
  if (date === undefined || Number.isNaN(ms)) throw invalidQuery(field, "must be an RFC 3339 time with its offset");
  if (date.startsWith("0001-")) throw invalidQuery(field, "must not be the zero time");
  if (Number(fraction) !== 0) throw invalidQuery(field, "must be a full hour");
  const [h = 0, m = 0] = offset === "Z" ? [] : offset.slice(1).split(":").map(Number);
  return { ms, offset: (offset.startsWith("-") ? -1 : 1) * (h * HOUR_MS + m * 60_000) };
};

/** Returns the time since local midnight. */
const toTimeOfDay = ({ ms, offset }: Moment): number => (((ms + offset) % DAY_MS) + DAY_MS) % DAY_MS;

/** Parses `start_time` and `end_time` of a query. */
export const parseRange = (query: { start_time?: string; end_time?: string }, now: number): Range => {
  const start = parseMoment("start_time", query.start_time);
  const end = parseMoment("end_time", query.end_time);
  if (start.ms > now) throw invalidQuery("start_time", "must not be in the future");
  const nextHour = Math.floor((now + end.offset) / HOUR_MS) * HOUR_MS + HOUR_MS - end.offset;
  if (end.ms > nextHour) throw invalidQuery("end_time", "must not be in the future");
  if (toTimeOfDay(start) !== 0) throw invalidQuery("start_time", "must be at 00:00:00");
  const today = Math.floor((now + end.offset) / DAY_MS);
  const isToday = Math.floor((end.ms + end.offset) / DAY_MS) === today;
  if (toTimeOfDay(end) !== 0 && !(isToday && toTimeOfDay(end) % HOUR_MS === 0)) {
    throw invalidQuery("end_time", "must be at 00:00:00, or at a full hour of today");
  }
  if (end.ms <= start.ms) throw invalidQuery("end_time", "must be after start_time");
  const forward = end.offset - start.offset;
  const changedAt = forward === 0 ? NEVER : findChangeBetween(start, end);
  if (changedAt === undefined)
    throw invalidQuery("end_time", "must have an offset of the same time zone as start_time");
  return {
    from: start.ms,
    to: end.ms,
    open: end.ms > now,
    endsToday: isToday && toTimeOfDay(end) !== 0,
    changedAt,
    forward,
  };
};

const NEVER = Number.MAX_SAFE_INTEGER;

/** Returns the length of a day or week in milliseconds. */
const getIntervalLength = (interval: Interval): number => (interval === "day" ? DAY_MS : 7 * DAY_MS);

/** Returns a range with the length of its days or weeks, in the form queries use. */
export const toIntervalParams = ({ from, to, changedAt, forward }: Range, interval: Interval) => ({
  from,
  to,
  step: getIntervalLength(interval),
  changed_at: changedAt,
  forward,
});

/** Returns the start of each day or week of a range, and its end. The last one can be short, and today's only as long as it has lasted. */
export const listEdges = ({ from, to, endsToday, changedAt, forward }: Range, interval: Interval): number[] => {
  const step = getIntervalLength(interval);
  const remainder = (to + forward - from) % step;
  if (interval === "week" && !endsToday && remainder !== 0 && remainder < 6 * DAY_MS) {
    throw invalidQuery("interval", "week needs a range whose last part has at least six days, or ends today");
  }
  const edges: number[] = [];
  for (let day = from; day < to + forward; day += step) edges.push(day < changedAt ? day : day - forward);
  return [...edges, to];
};
