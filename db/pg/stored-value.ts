// Values as SQLite gives them.
import type { Value } from "../engine/sql.ts";

/** Numbers for integers, 0 and 1 for booleans. */
export const storedValue = (value: unknown): Value => {
  if (typeof value === "bigint") return Number(value);
  if (typeof value === "boolean") return Number(value);
  return value as Value;
};
