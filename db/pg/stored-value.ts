// Converts values to the form that SQLite returns.
import type { Value } from "../engine/sql.ts";

/** Returns numbers for integers, 0 and 1 for booleans. */
export const toStoredValue = (value: unknown): Value => {
  if (typeof value === "bigint") return Number(value);
  if (typeof value === "boolean") return Number(value);
  return value as Value;
};

/**
 * Makes a value storable in PostgreSQL by removing NUL from text. User input with NUL is rejected earlier, but output of programs with NUL
 * must not make a commit fail.
 */
export const toStorableValue = (value: Value): Value =>
  typeof value === "string" && value.includes("\0") ? value.replaceAll("\0", "\uFFFD") : value;
