// Booleans in queries: 1, t, true and 0, f, false in any letter case (facts/platform 3.1).
import { Type as t } from "@sinclair/typebox";
import { invalid } from "#base/errors.ts";

export const Flag = t.Optional(t.String({ maxLength: 8, description: "true or false (default)" }));

/** Absent and empty are false. Throws 400 for anything that is no boolean. */
export const flagOf = (field: string, text: string | undefined): boolean => {
  const word = (text ?? "").toLowerCase();
  if (["", "0", "f", "false"].includes(word)) return false;
  if (["1", "t", "true"].includes(word)) return true;
  throw invalid("Query parameters have invalid values.", [{ field, detail: "must be a boolean" }]);
};
