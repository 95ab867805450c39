// Wire shapes of permission checks (facts/platform 9.1).
import { type Static, Type as t } from "@sinclair/typebox";
import { namedObject } from "../shape-names.ts";

export const AuthObject = namedObject(
  "AuthObject",
  {
    resource_type: t.String({
      maxLength: 64,
      description: "The type of the resource, such as `workspace` or `template`.",
    }),
    owner_id: t.Optional(t.String({ maxLength: 64, description: "The owner of the resource: a user ID or `me`." })),
    organization_id: t.Optional(t.String({ maxLength: 64, description: "The ID of the resource's organization." })),
    resource_id: t.Optional(
      t.String({ maxLength: 64, description: "The ID of the resource. The server looks up its owner." }),
    ),
    any_org: t.Optional(t.Boolean({ description: "Whether the caller has the permission in any organization." })),
  },
  { description: "The resource that the action applies to." },
);
export type AuthObject = Static<typeof AuthObject>;

export const AuthCheck = namedObject("AuthCheck", {
  object: AuthObject,
  action: t.String({ maxLength: 64, description: "The action, such as `read`, `create`, `update` or `delete`." }),
});
export type AuthCheck = Static<typeof AuthCheck>;

export const AuthChecks = namedObject("AuthChecks", {
  checks: t.Record(t.String(), AuthCheck, {
    description: "The checks, keyed by names that the caller chooses; at most 200.",
  }),
});

export const AuthAnswers = t.Record(t.String(), t.Boolean(), {
  description: "The results, keyed by the names of the checks. False for unknown resources.",
});
