// Wire shapes of permission checks (facts/platform 9.1).
import { type Static, Type as t } from "@sinclair/typebox";
import { namedObject } from "../shape-names.ts";

export const AuthObject = namedObject(
  "AuthObject",
  {
    resource_type: t.String({ maxLength: 64, description: "Such as `workspace` or `template`." }),
    owner_id: t.Optional(t.String({ maxLength: 64, description: "A user's id or `me`." })),
    organization_id: t.Optional(t.String({ maxLength: 64, description: "An organization's id." })),
    resource_id: t.Optional(
      t.String({ maxLength: 64, description: "ID of the resource; its owner is then looked up." }),
    ),
    any_org: t.Optional(t.Boolean({ description: "Whether the caller has the permission in any organization." })),
  },
  { description: "The subject." },
);
export type AuthObject = Static<typeof AuthObject>;

export const AuthCheck = namedObject("AuthCheck", {
  object: AuthObject,
  action: t.String({ maxLength: 64, description: "Such as `read`, `create`, `update` or `delete`." }),
});
export type AuthCheck = Static<typeof AuthCheck>;

export const AuthChecks = namedObject("AuthChecks", {
  checks: t.Record(t.String(), AuthCheck, { description: "Keyed by names that the caller chooses; at most 200." }),
});

export const AuthAnswers = t.Record(t.String(), t.Boolean(), {
  description: "Uses the same names. Unknown resources are false.",
});
