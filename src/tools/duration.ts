// Parses the durations of tools: "10s", "1m30s", "500ms". A bare number, which weaker models send, means seconds.
import type { ToolResult } from "./result.ts";
import { ToolError } from "./tool.ts";

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** A number without a unit. */
const UNITLESS = /^\d+(\.\d+)?$/;

/** Returns a note for the result if a duration had no unit; empty if it had one or the unit does not matter. */
export const createUnitNote = (name: string, text: string | undefined): ToolResult => {
  const trimmed = text?.trim() ?? "";
  return UNITLESS.test(trimmed) && Number(trimmed) !== 0
    ? { [`${name}_note`]: `"${name}" has no unit: ${trimmed} was taken as ${trimmed} seconds.` }
    : {};
};

/** Returns milliseconds, at most `limit_ms`. Throws `ToolError` for an invalid duration. */
export const parseDuration = (text: string | undefined, default_ms: number, limit_ms: number): number => {
  if (text === undefined || text.trim() === "") return default_ms;
  const trimmed = text.trim().toLowerCase();
  if (UNITLESS.test(trimmed)) return Math.min(Math.round(Number(trimmed) * 1_000), limit_ms);
  if (!/^(\d+(\.\d+)?(ms|s|m|h))+$/.test(trimmed)) {
    throw new ToolError(`"${text.slice(0, 40)}" is not a duration: write it as "10s", "2m" or "1h30m".`);
  }
  let sum = 0;
  for (const [, count = "0", , unit = "s"] of trimmed.matchAll(/(\d+(\.\d+)?)(ms|s|m|h)/g)) {
    sum += Number(count) * (UNIT_MS[unit] ?? 0);
  }
  return Math.min(Math.round(sum), limit_ms);
};
