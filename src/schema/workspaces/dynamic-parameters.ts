// Wire shapes of a form whose parameters depend on each other (facts/platform 9.3: dynamic-parameters).
import { type Static, Type as t } from "@sinclair/typebox";
import { iconUrl } from "../fields.ts";
import { oneOf } from "../one-of.ts";
import { namedObject } from "../shape-names.ts";
import { TemplateParameter } from "../templates/template-version.ts";

const Text = namedObject("ParameterText", {
  value: t.String({ description: "The value as text; empty if `valid` is false." }),
  valid: t.Boolean({ description: "Whether there is a value." }),
});
const nullable = <T extends ReturnType<typeof t.String> | ReturnType<typeof t.Integer>>(type: T, description: string) =>
  t.Union([type, t.Null()], { description });

export const Diagnostic = namedObject("ParameterDiagnostic", {
  severity: oneOf(["error", "warning"], "`error`: a build with these values is rejected."),
  summary: t.String({ description: "The problem, as a sentence." }),
  detail: t.String({ description: "The cause of the problem; may be empty." }),
  extra: t.Object({ code: t.String({ description: "The error code: `required`, or empty." }) }),
});
export type Diagnostic = Static<typeof Diagnostic>;

const Option = TemplateParameter.properties.options.items.properties;

export const DynamicParameter = namedObject("DynamicParameter", {
  name: TemplateParameter.properties.name,
  display_name: TemplateParameter.properties.display_name,
  description: TemplateParameter.properties.description,
  type: TemplateParameter.properties.type,
  form_type: t.String({ description: "The form control for the parameter." }),
  styling: t.Record(t.String(), t.Unknown(), {
    description: "Display hints from the template, such as `placeholder`.",
  }),
  mutable: TemplateParameter.properties.mutable,
  default_value: { ...Text, description: "The default with the given values." },
  icon: iconUrl,
  options: t.Array(
    t.Object({
      name: Option.name,
      description: t.String(),
      value: { ...Text, description: "The value that the option stands for." },
      icon: iconUrl,
    }),
    {
      description: "The options that are available with the given values.",
    },
  ),
  validations: t.Array(
    t.Object({
      validation_error: t.String({
        description: "The error that is shown for invalid values; empty for a general one.",
      }),
      validation_regex: nullable(t.String(), "The regular expression that a string must match; null to allow any."),
      validation_min: nullable(t.Integer(), "The minimum of a number; null for no minimum."),
      validation_max: nullable(t.Integer(), "The maximum of a number; null for no maximum."),
      validation_monotonic: nullable(
        t.String(),
        "Whether the number may only grow or shrink: `increasing` or `decreasing`; null if it may do both.",
      ),
    }),
    { description: "The rules for the value; empty if every value is valid." },
  ),
  required: t.Boolean({ description: "Whether a value is required because the parameter has no default." }),
  order: t.Integer({ description: "The position of the parameter in the form, starting at 0." }),
  ephemeral: TemplateParameter.properties.ephemeral,
  value: { ...Text, description: "The given value, or the default." },
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
