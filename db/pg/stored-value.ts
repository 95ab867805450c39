// Values as SQLite gives them.
import type { Value } from "../engine/sql.ts";

/** Numbers for integers, 0 and 1 for booleans. */
export const storedValue = (value: unknown): Value => {
  if (typeof value === "bigint") return Number(value);
  if (typeof value === "boolean") return Number(value);
  return value as Value;
};

/** As PostgreSQL takes it: no text with NUL. People's are refused before; what machines say and nobody has cleaned must not fail a commit. */
export const storableValue = (value: Value): Value =>
  typeof value === "string" && value.includes("\0") ? value.replaceAll("\0", "\uFFFD") : value;
