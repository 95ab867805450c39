// Formats numbers, and their change from the previous period. Pure.

import { formatDuration } from "../../parts/format-time.ts";
import type { Measure } from "../../parts/plot/measure.ts";

/** 1,234 and 12.5 */
export const count = (value: number): string =>
  value.toLocaleString("en", { maximumFractionDigits: value < 10 && !Number.isInteger(value) ? 1 : 0 });

/** 812, 24.1 K, 3.2 M */
export const formatShortCount = (value: number): string => {
  if (value < 10_000) return count(value);
  const [size, unit] =
    value < 1_000_000 ? [1_000, "K"] : value < 1_000_000_000 ? [1_000_000, "M"] : [1_000_000_000, "G"];
  const short = value / size;
  return `${short >= 100 ? Math.round(short) : short.toFixed(1)} ${unit}`;
};

const formatDollars = (micros: number, digits: number): string =>
  `$${(micros / 1_000_000).toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits })}`;

/** Millionths of a US dollar: $0.000042, $0.0042, $3.20, $1,240 */
export const formatMoney = (micros: number): string => {
  if (micros === 0 || micros >= 1_000_000_000) return formatDollars(micros, 0);
  return formatDollars(micros, micros < 100 ? 6 : micros < 10_000 ? 4 : 2);
};

/** The possible steps of an axis: 1, 2, 5, 10, ... */
const ROUND_STEPS = Array.from({ length: 45 }, (_, at) => ([1, 2, 5][at % 3] ?? 1) * 10 ** Math.floor(at / 3));
const [SECOND, MINUTE, HOUR] = [1_000, 60_000, 3_600_000];

export const COUNT: Measure = { format: count, steps: ROUND_STEPS, least: 1 };
export const SHORT_COUNT: Measure = { format: formatShortCount, steps: ROUND_STEPS, least: 1 };
export const MONEY: Measure = {
  format: formatMoney,
  steps: ROUND_STEPS,
  // Uses as many digits as the step has; cents always have two.
  mark: (value, step) => {
    const digits = Math.max(0, 6 - Math.floor(Math.log10(step)));
    return value === 0 ? "$0" : formatDollars(value, digits === 1 ? 2 : digits);
  },
  least: 1_000_000,
};
export const TIME: Measure = {
  format: formatDuration,
  // Every multiple of a step has a distinct label.
  steps: [
    ...[10, 20, 100, 200, 500, SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND, 20 * SECOND],
    ...[1, 2, 5, 10, 20].map((minutes) => minutes * MINUTE),
    ...[1, 2, 4, 6, 24, 48, 96, 240, 480].map((hours) => hours * HOUR),
  ],
  least: SECOND,
};

/** Formats a share as 98.2 %; empty if the whole is zero. */
export const formatShare = (part: number, whole: number): string =>
  whole === 0 ? "–" : `${((part / whole) * 100).toFixed(part === whole ? 0 : 1)} %`;

/** Larger changes are not shown, because they only mean that the previous value was close to zero. */
const MAX_PERCENT = 999;

/** Formats a change as +11 % or −5 %; empty if the previous value was close to zero, or nothing has changed. */
export const formatChange = (now: number, before: number): string => {
  if (before === 0 || now === before) return "";
  const percent = Math.round(((now - before) / before) * 100);
  return percent === 0 || percent > MAX_PERCENT ? "" : `${percent > 0 ? "+" : "−"}${count(Math.abs(percent))} %`;
};
