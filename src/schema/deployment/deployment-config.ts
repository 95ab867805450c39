// Wire shape of the effective settings (facts/platform 9.1), each with its source, without secrets.
import { type Static, Type as t } from "@sinclair/typebox";
import { oneOf } from "../one-of.ts";
import { namedObject } from "../shape-names.ts";

export const DeploymentOption = namedObject("DeploymentOption", {
  name: t.String({ description: "The key in the settings file." }),
  description: t.String(),
  flag: t.String(),
  env: t.String(),
  yaml: t.String({ description: "The key in the settings file; empty if it cannot be set there." }),
  default: t.String(),
  value: t.Union([t.String(), t.Null()], { description: "Null when it is not set, `(hidden)` for secrets." }),
  value_source: oneOf(["flag", "env", "yaml", "default", ""], "Where the value comes from; empty: the default."),
  value_origin: t.String({ description: "The flag, the variable, or the place in the file." }),
  hidden: t.Boolean({ description: "It is a secret." }),
  group: t.Object({ name: t.String() }),
});

export const DeploymentConfig = namedObject("DeploymentConfig", {
  config: t.Record(t.String(), t.Union([t.String(), t.Null()]), { description: "Effective values by name." }),
  options: t.Array(DeploymentOption),
});
export type DeploymentConfig = Static<typeof DeploymentConfig>;
