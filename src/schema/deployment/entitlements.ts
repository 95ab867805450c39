// Wire shape of the server's features, for clients that check whether a feature is licensed (facts/wire 5). Every available feature is
// enabled.
import { Type as t } from "@sinclair/typebox";
import { oneOf } from "../one-of.ts";
import { namedObject } from "../shape-names.ts";

export const Entitlements = namedObject("Entitlements", {
  features: t.Record(t.String(), t.Object({ entitlement: oneOf(["entitled", "not_entitled"]), enabled: t.Boolean() }), {
    description: "The features, keyed by the names that clients use.",
  }),
  warnings: t.Array(t.String()),
  errors: t.Array(t.String()),
  has_license: t.Boolean({ description: "Always false: Slipway has no licenses." }),
  trial: t.Boolean(),
  require_telemetry: t.Boolean(),
  refreshed_at: t.String({ format: "date-time" }),
});
