// Wire shape of the server's features, for clients that check whether a feature is licensed (facts/wire 5). Every available feature is
// enabled.
import { Type as t } from "@sinclair/typebox";
import { time } from "../fields.ts";
import { oneOf } from "../one-of.ts";
import { namedObject } from "../shape-names.ts";

export const Entitlements = namedObject("Entitlements", {
  features: t.Record(
    t.String(),
    t.Object({
      entitlement: oneOf(["entitled", "not_entitled"], "`not_entitled`: this server doesn't have the feature."),
      enabled: t.Boolean({ description: "Whether the feature is on." }),
    }),
    {
      description: "The features, keyed by the names that clients use.",
    },
  ),
  warnings: t.Array(t.String(), { description: "Always empty." }),
  errors: t.Array(t.String(), { description: "Always empty." }),
  has_license: t.Boolean({ description: "Always false: Slipway has no licenses." }),
  trial: t.Boolean({ description: "Always false." }),
  require_telemetry: t.Boolean({ description: "Always false." }),
  refreshed_at: time("The time of the request."),
});
