// The time range of a cost report: a month, or between two times. Pure.
import { invalidField } from "#base/errors.ts";

const DAY_MS = 86_400_000;
const DEFAULT_DAYS = 30;
/** A later time has a year of five digits, which no RFC 3339 time has. */
const MAX_TIME = Date.UTC(9999, 11, 31, 23, 59, 59, 999);
const FIRST_MONTH = "1970-01";
const TIME = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2}))?$/;

/** Milliseconds since 1970; `to` is not included. */
export type CostRange = { readonly from: number; readonly to: number };
export type CostQuery = {
  readonly start_date?: string | undefined;
  readonly end_date?: string | undefined;
  readonly month?: string | undefined;
};

/** Returns the range; the last 30 days by default. Rejects with 400 for an invalid time, or an end before the start. */
export const parseCostRange = ({ start_date, end_date, month }: CostQuery, now: number): CostRange => {
  if (month !== undefined) {
    if (start_date !== undefined || end_date !== undefined) {
      throw invalidField("month", "must not be given together with start_date or end_date");
    }
    return parseMonth(month);
  }
  const to = end_date === undefined ? now + 1 : parseTime("end_date", end_date);
  const from = start_date === undefined ? to - DEFAULT_DAYS * DAY_MS : parseTime("start_date", start_date);
  if (from >= to) throw invalidField("end_date", "must be after start_date");
  return { from, to };
};

/** Returns the UTC offset of a time in milliseconds; 0 for a date or an invalid time. */
export const parseClockOffset = (text: string | undefined): number => {
  const [, sign, hours, minutes] = /([+-])(\d{2}):(\d{2})$/.exec(text ?? "") ?? [];
  return (sign === "-" ? -1 : 1) * (Number(hours ?? 0) * 60 + Number(minutes ?? 0)) * 60_000;
};

const parseMonth = (text: string): CostRange => {
  const [, year = "", month = ""] = /^(\d{4})-(0[1-9]|1[0-2])$/.exec(text) ?? [];
  if (month === "" || text < FIRST_MONTH) throw invalidField("month", "must be a month, such as 2026-11");
  const to = Date.UTC(Number(year), Number(month));
  if (to > MAX_TIME) throw invalidField("month", "must end before the year 10000");
  return { from: Date.UTC(Number(year), Number(month) - 1), to };
};

const parseTime = (field: string, text: string): number => {
  const ms = TIME.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(ms) || ms > MAX_TIME)
    throw invalidField(field, "must be a date (UTC) or an RFC 3339 time with its offset");
  return ms;
};
