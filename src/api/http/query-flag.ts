// Booleans of a query as callers really send them (facts/platform 3.1).
import { Type as t } from "@sinclair/typebox";
import { invalid } from "#base/errors.ts";

/** The schema of a boolean query parameter; read it with `flagOf`. */
export const flagQuery = (description: string) => t.Optional(t.String({ description: `${description} Boolean.` }));

/** 1, t, true, 0, f, false in any letter case; absent and empty are false. Throws 400 for anything else. */
export const flagOf = (field: string, text: string | undefined): boolean => {
  const word = (text ?? "").toLowerCase();
  if (["", "0", "f", "false"].includes(word)) return false;
  if (["1", "t", "true"].includes(word)) return true;
  throw invalid("Query parameters have invalid values.", [{ field, detail: "must be a boolean" }]);
};
