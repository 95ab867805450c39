// Wire shapes of a form whose parameters depend on each other (facts/platform 9.3: dynamic-parameters).
import { type Static, Type as t } from "@sinclair/typebox";
import { namedObject } from "../shape-names.ts";

const Text = namedObject("ParameterText", {
  value: t.String(),
  valid: t.Boolean({ description: "Whether there is a value." }),
});
const nullable = <T extends ReturnType<typeof t.String> | ReturnType<typeof t.Integer>>(type: T) =>
  t.Union([type, t.Null()]);

export const Diagnostic = namedObject("ParameterDiagnostic", {
  severity: t.Union([t.Literal("error"), t.Literal("warning")]),
  summary: t.String(),
  detail: t.String(),
  extra: t.Object({ code: t.String({ description: "The error code: `required`, or empty." }) }),
});
export type Diagnostic = Static<typeof Diagnostic>;

export const DynamicParameter = namedObject("DynamicParameter", {
  name: t.String(),
  display_name: t.String(),
  description: t.String(),
  type: t.String(),
  form_type: t.String({ description: "The form control for the parameter." }),
  styling: t.Record(t.String(), t.Unknown(), {
    description: "Display hints from the template, such as `placeholder`.",
  }),
  mutable: t.Boolean(),
  default_value: Text,
  icon: t.String(),
  options: t.Array(t.Object({ name: t.String(), description: t.String(), value: Text, icon: t.String() }), {
    description: "The options that are available with the given values.",
  }),
  validations: t.Array(
    t.Object({
      validation_error: t.String(),
      validation_regex: nullable(t.String()),
      validation_min: nullable(t.Integer()),
      validation_max: nullable(t.Integer()),
      validation_monotonic: nullable(t.String()),
    }),
  ),
  required: t.Boolean({ description: "Whether a value is required because the parameter has no default." }),
  order: t.Integer(),
  ephemeral: t.Boolean(),
  value: Text,
  diagnostics: t.Array(Diagnostic, { description: "Problems with the parameter's value." }),
});
export type DynamicParameter = Static<typeof DynamicParameter>;

export const DynamicParameters = namedObject("DynamicParameters", {
  id: t.Integer({ description: "The ID of the request; -1 for the first message, which is sent without a request." }),
  diagnostics: t.Array(Diagnostic, { description: "Problems with the request as a whole." }),
  parameters: t.Array(DynamicParameter, { description: "The parameters to show for these values, in display order." }),
});
export type DynamicParameters = Static<typeof DynamicParameters>;

export const DynamicParametersRequest = namedObject("DynamicParametersRequest", {
  id: t.Optional(
    t.Integer({ description: "The ID of the request, chosen by the caller. The response has the same ID." }),
  ),
  inputs: t.Record(t.String({ maxLength: 64 }), t.String({ maxLength: 65_536 }), {
    maxProperties: 256,
    description: "The values by parameter name. Omitted parameters use their defaults.",
  }),
  owner_id: t.Optional(
    t.String({ maxLength: 64, description: "The ID of the workspace's owner. It does not affect the result." }),
  ),
});
export type DynamicParametersRequest = Static<typeof DynamicParametersRequest>;
