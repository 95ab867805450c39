// The specification's generic body, used for all errors and some successes.
import { type Static, Type as t } from "@sinclair/typebox";
import { namedObject } from "./shape-names.ts";

export const Generic = namedObject("Generic", {
  message: t.String({ description: "What happened, in one sentence." }),
  kind: t.Optional(
    t.String({
      description:
        "Which of several reasons it is, for programs: hook_denied, hook_dispatch_failed, usage_limit, revoked (the key has been ended; it has not merely expired).",
    }),
  ),
  detail: t.Optional(t.String({ description: "Further details about the cause, if any." })),
  validations: t.Optional(
    t.Array(
      namedObject("Validation", {
        field: t.String({ description: "JSON or query name of the field." }),
        detail: t.String({ description: "The rule that it violates." }),
      }),
    ),
  ),
});
export type Generic = Static<typeof Generic>;
