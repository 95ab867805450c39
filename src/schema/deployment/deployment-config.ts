// Wire shape of the effective settings and their sources, without secrets (facts/platform 9.1).
import { type Static, Type as t } from "@sinclair/typebox";
import { oneOf } from "../one-of.ts";
import { namedObject } from "../shape-names.ts";

export const DeploymentOption = namedObject("DeploymentOption", {
  name: t.String({ description: "The name of the setting, which is its key in the settings file." }),
  description: t.String({ description: "What the setting does." }),
  flag: t.String({ description: "The command-line flag of the setting, such as `--http-address`." }),
  env: t.String({ description: "The environment variable of the setting." }),
  yaml: t.String({ description: "The setting's key in the settings file; empty if it can't be set there." }),
  default: t.String({ description: "The default value, as text." }),
  value: t.Union([t.String(), t.Null()], {
    description: "The effective value, as text; `(hidden)` for secrets, and null if the setting has no value.",
  }),
  value_source: oneOf(["flag", "env", "yaml", "default", ""], "Where the value comes from; empty for the default."),
  value_origin: t.String({
    description: "The flag, the environment variable, or the place in the file that sets the value.",
  }),
  hidden: t.Boolean({ description: "Whether the value is a secret." }),
  group: t.Object({ name: t.String({ description: "The heading under which the setting is listed." }) }),
});

export const DeploymentConfig = namedObject("DeploymentConfig", {
  config: t.Record(t.String(), t.Union([t.String(), t.Null()]), {
    description: "The effective values, by setting name.",
  }),
  options: t.Array(DeploymentOption, { description: "All settings of the server." }),
});
export type DeploymentConfig = Static<typeof DeploymentConfig>;
