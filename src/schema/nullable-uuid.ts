// An optional UUID. The specification has {uuid, valid}; upstream clients need a plain string or null (docs/spec/design.md 6). This file is
// the only place that chooses between them.
import { type Static, Type as t } from "@sinclair/typebox";
import { NIL_UUID } from "#base/ids.ts";
import { namedObject } from "./shape-names.ts";

export const NullableUuid = t.Union(
  [
    namedObject("OptionalUuid", {
      uuid: t.String({ format: "uuid" }),
      valid: t.Boolean({ description: "Whether there is a value. If false, ignore `uuid`." }),
    }),
    t.String({ format: "uuid" }),
    t.Null(),
  ],
  {
    description:
      "An object `{uuid, valid}`. Clients that sign in under the upstream names get a string or null instead.",
  },
);
export type NullableUuid = Static<typeof NullableUuid>;

/** Returns `id` in the caller's format. */
export const nullableUuid = (id: string | null | undefined, compat: boolean): NullableUuid =>
  compat ? (id ?? null) : { uuid: id ?? NIL_UUID, valid: id !== null && id !== undefined };
