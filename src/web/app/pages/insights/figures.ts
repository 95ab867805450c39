// Formats numbers, and their change from the previous period. Pure.

import { formatDuration } from "../../parts/format-time.ts";
import type { Measure } from "../../parts/plot/measure.ts";

/** 1,234 and 12.5 */
export const formatNumber = (value: number): string =>
  value.toLocaleString("en", { maximumFractionDigits: value < 10 && !Number.isInteger(value) ? 1 : 0 });

/** 812, 24.1 K, 3.2 M */
export const formatShortCount = (value: number): string => {
  if (value < 10_000) return formatNumber(value);
  const [divisor, unit] =
    value < 1_000_000 ? [1_000, "K"] : value < 1_000_000_000 ? [1_000_000, "M"] : [1_000_000_000, "G"];
  const quotient = value / divisor;
  return `${quotient >= 100 ? Math.round(quotient) : quotient.toFixed(1)} ${unit}`;
};

const formatDollars = (micros: number, digits: number): string =>
  `$${(micros / 1_000_000).toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits })}`;

/** Millionths of a US dollar: $0.000042, $0.0042, $3.20, $1,240 */
export const formatMoney = (micros: number): string => {
  if (micros === 0 || micros >= 1_000_000_000) return formatDollars(micros, 0);
  return formatDollars(micros, micros < 100 ? 6 : micros < 10_000 ? 4 : 2);
};

/** The possible steps of an axis: 1, 2, 5, 10, ... */
const ROUND_STEPS = Array.from({ length: 45 }, (_, index) => ([1, 2, 5][index % 3] ?? 1) * 10 ** Math.floor(index / 3));
const [SECOND_MS, MINUTE_MS, HOUR_MS] = [1_000, 60_000, 3_600_000];

export const COUNT: Measure = { format: formatNumber, steps: ROUND_STEPS, minExtent: 1 };
export const SHORT_COUNT: Measure = { format: formatShortCount, steps: ROUND_STEPS, minExtent: 1 };
export const MONEY: Measure = {
  format: formatMoney,
  steps: ROUND_STEPS,
  // Uses as many digits as the step has; cents always have two.
  formatTick: (value, step) => {
    const digits = Math.max(0, 6 - Math.floor(Math.log10(step)));
    return value === 0 ? "$0" : formatDollars(value, digits === 1 ? 2 : digits);
  },
  minExtent: 1_000_000,
};
export const TIME: Measure = {
  format: formatDuration,
  // Every multiple of a step has a distinct label.
  steps: [
    ...[10, 20, 100, 200, 500, SECOND_MS, 2 * SECOND_MS, 5 * SECOND_MS, 10 * SECOND_MS, 20 * SECOND_MS],
    ...[1, 2, 5, 10, 20].map((minutes) => minutes * MINUTE_MS),
    ...[1, 2, 4, 6, 24, 48, 96, 240, 480].map((hours) => hours * HOUR_MS),
  ],
  minExtent: SECOND_MS,
};

/** Formats a share as 98.2 %; empty if the whole is zero. */
export const formatShare = (part: number, whole: number): string =>
  whole === 0 ? "–" : `${((part / whole) * 100).toFixed(part === whole ? 0 : 1)} %`;

/** Larger changes are not shown, because they only mean that the previous value was close to zero. */
const MAX_PERCENT = 999;

/** Formats a change as +11 % or −5 %; empty if the previous value was close to zero, or nothing has changed. */
export const formatChange = (current: number, previous: number): string => {
  if (previous === 0 || current === previous) return "";
  const percent = Math.round(((current - previous) / previous) * 100);
  return percent === 0 || percent > MAX_PERCENT ? "" : `${percent > 0 ? "+" : "−"}${formatNumber(Math.abs(percent))} %`;
};
