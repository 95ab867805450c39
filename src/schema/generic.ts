// The specification's generic body, used for all errors and some successes.
import { type Static, Type as t } from "@sinclair/typebox";
import { namedObject } from "./shape-names.ts";

export const Generic = namedObject("Generic", {
  message: t.String({ description: "A sentence that says what happened." }),
  kind: t.Optional(
    t.String({
      description:
        "A machine-readable reason for the error: `hook_denied`, `hook_dispatch_failed`, `usage_limit` or `revoked` (the key was revoked; it didn't merely expire).",
    }),
  ),
  detail: t.Optional(t.String({ description: "Details about the cause, if any." })),
  validations: t.Optional(
    t.Array(
      namedObject("Validation", {
        field: t.String({ description: "The name of the field in the JSON body or the query." }),
        detail: t.String({ description: "The rule that the value violates." }),
      }),
    ),
  ),
});
export type Generic = Static<typeof Generic>;
