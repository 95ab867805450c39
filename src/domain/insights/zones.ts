// The boundaries of days: in a time zone with daylight saving time, or at a fixed offset where every day has 24 hours (facts/platform 6.2).
import { invalid } from "#base/errors.ts";

export const DAY_MS = 86_400_000;
export const HOUR_MS = 3_600_000;
/** All time zones differ from UTC by multiples of a quarter of an hour. */
const STEP_MS = 900_000;
const MAX_OFFSET_MS = 15 * HOUR_MS;

/** Returns a 400 for query parameters. */
export const invalidQuery = (field: string, detail: string) =>
  invalid("A query parameter has an invalid value.", [{ field, detail }]);

/** Parses whole hours from UTC, -12 to 14; undefined if absent. */
export const parseOffset = (text: string | undefined): number | undefined => {
  if (text === undefined) return undefined;
  const hours = /^-?\d{1,2}$/.test(text) ? Number(text) : Number.NaN;
  if (hours >= -12 && hours <= 14) return hours;
  throw invalidQuery("tz_offset", "must be a whole number of hours from -12 to 14");
};

/** `dayOf` returns the day of a time, in days since 1970. */
export type Zone = { dayOf(ms: number): number; startOf(day: number): number };

export const makeFixedZone = (hours: number): Zone => ({
  dayOf: (ms) => Math.floor((ms + hours * HOUR_MS) / DAY_MS),
  startOf: (day) => day * DAY_MS - hours * HOUR_MS,
});

/** Returns the zone with an IANA name. Rejects with 400 for any other name. */
export const makeNamedZone = (name: string): Zone => {
  const format = makeFormat(name);
  const dayOf = (ms: number): number => {
    const parts: Record<string, number> = {};
    for (const { type, value } of format.formatToParts(ms)) parts[type] = Number(value);
    const { year = 0, month = 1, day = 1 } = parts;
    return Math.floor(Date.UTC(year, month - 1, day) / DAY_MS);
  };
  return {
    dayOf,
    // Finds the first quarter of an hour of the day: where clocks go forward at midnight, a day begins at one.
    startOf: (day) => {
      let [low, high] = [(day * DAY_MS - MAX_OFFSET_MS) / STEP_MS, (day * DAY_MS + MAX_OFFSET_MS) / STEP_MS];
      while (low < high) {
        const middle = Math.floor((low + high) / 2);
        if (dayOf(middle * STEP_MS) >= day) high = middle;
        else low = middle + 1;
      }
      return low * STEP_MS;
    },
  };
};

type Moment = { readonly ms: number; readonly offset: number };

/** Returns the last clock change of the zones that had these offsets at these times; undefined if there is no such zone. */
export const findChangeBetween = (start: Moment, end: Moment): number | undefined => {
  const changes = new Map<number, number>();
  for (const name of Intl.supportedValuesOf("timeZone")) {
    const offsetAt = findOffsets(name);
    if (offsetAt(start.ms) !== start.offset || offsetAt(end.ms) !== end.offset) continue;
    let [low, high] = [Math.floor(start.ms / STEP_MS), Math.ceil(end.ms / STEP_MS)];
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (offsetAt(middle * STEP_MS) === end.offset) high = middle;
      else low = middle;
    }
    changes.set(high * STEP_MS, (changes.get(high * STEP_MS) ?? 0) + 1);
  }
  // Zones with both offsets may change at different times; the most common time is used.
  const [mostCommon] = [...changes].sort(([, a], [, b]) => b - a);
  return mostCommon?.[0];
};

/** Returns a function from a time to its UTC offset in milliseconds. */
const findOffsets = (timeZone: string): ((ms: number) => number) => {
  const format = new Intl.DateTimeFormat("en-u-ca-gregory-nu-latn", { timeZone, timeZoneName: "longOffset" });
  return (ms) => {
    const text = format.formatToParts(ms).find(({ type }) => type === "timeZoneName")?.value ?? "";
    const [, sign, hours, minutes] = /([+-])(\d\d):(\d\d)/.exec(text) ?? [];
    return (sign === "-" ? -1 : 1) * (Number(hours ?? 0) * HOUR_MS + Number(minutes ?? 0) * 60_000);
  };
};

const makeFormat = (timeZone: string): Intl.DateTimeFormat => {
  try {
    // The runtime accepts offsets such as +02:00, but they are not zone names.
    if (!/^[A-Za-z]/.test(timeZone)) throw new RangeError();
    const parts = { year: "numeric", month: "numeric", day: "numeric" } as const;
    return new Intl.DateTimeFormat("en-u-ca-gregory-nu-latn", { timeZone, ...parts });
  } catch {
    throw invalidQuery("timezone", "must be the IANA name of a time zone, such as Europe/Berlin");
  }
};
