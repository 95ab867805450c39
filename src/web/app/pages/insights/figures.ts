// Numbers as people read them, and what changed since the days before. Pure.

/** 1,234 and 12.5 */
export const count = (value: number): string =>
  value.toLocaleString("en", { maximumFractionDigits: value < 10 && !Number.isInteger(value) ? 1 : 0 });

/** 812, 24.1 K, 3.2 M */
export const shortCount = (value: number): string => {
  if (value < 10_000) return count(value);
  const [size, unit] =
    value < 1_000_000 ? [1_000, "K"] : value < 1_000_000_000 ? [1_000_000, "M"] : [1_000_000_000, "G"];
  const short = value / size;
  return `${short >= 100 ? Math.round(short) : short.toFixed(1)} ${unit}`;
};

/** Millionths of a US dollar: $0.0042, $3.20, $1,240 */
export const money = (micros: number): string => {
  const dollars = micros / 1_000_000;
  const digits = dollars === 0 || dollars >= 1_000 ? 0 : dollars < 0.01 ? 4 : 2;
  return `$${dollars.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits })}`;
};

/** A share as 98.2 %; nothing of nothing is no share. */
export const share = (part: number, whole: number): string =>
  whole === 0 ? "–" : `${((part / whole) * 100).toFixed(part === whole ? 0 : 1)} %`;

/** More than this says only that there was next to nothing before. */
const MOST_PERCENT = 999;

/** +11 %, −5 %; empty where there was next to nothing before, or nothing has changed. */
export const change = (now: number, before: number): string => {
  if (before === 0 || now === before) return "";
  const percent = Math.round(((now - before) / before) * 100);
  return percent === 0 || percent > MOST_PERCENT ? "" : `${percent > 0 ? "+" : "−"}${count(Math.abs(percent))} %`;
};
