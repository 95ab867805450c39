// Evaluates a form's parameters for the values entered so far: which parameters are shown, their options and defaults, and their errors
// (rules DY-1 to DY-3). Reports errors per parameter and never throws. Pure.

import type { Manifest, ManifestParameter } from "#schema/templates/manifest.ts";
import type { Diagnostic, DynamicParameter, DynamicParameters } from "#schema/workspaces/dynamic-parameters.ts";
import { applyConditions } from "./conditions.ts";
import { checkValue, formatDefault, getFormType, getType } from "./parameters.ts";
import { withSharedEffort } from "./pattern.ts";

const toErrorDiagnostic = (summary: string, detail: string, code = ""): Diagnostic => ({
  severity: "error",
  summary,
  detail,
  extra: { code },
});

/** `inputs`: values by parameter name. Parameters without an input have their default value. */
export const evaluate = (manifest: Manifest, inputs: Readonly<Record<string, string>>): Omit<DynamicParameters, "id"> =>
  withSharedEffort(() => evaluateManifest(manifest, inputs));

const evaluateManifest = (
  manifest: Manifest,
  inputs: Readonly<Record<string, string>>,
): Omit<DynamicParameters, "id"> => {
  const values: Record<string, string> = {};
  const parameters: DynamicParameter[] = [];
  for (const declared of manifest.parameters ?? []) {
    const parameter = applyConditions(declared, values);
    if (!parameter) continue;
    const value = Object.hasOwn(inputs, declared.name) ? inputs[declared.name] : formatDefault(parameter);
    const diagnostic = findValueProblem(parameter, value);
    if (value !== undefined && !diagnostic) values[declared.name] = value;
    parameters.push(presentParameter(parameter, parameters.length, value, diagnostic ? [diagnostic] : []));
  }
  const known = new Set((manifest.parameters ?? []).map(({ name }) => name));
  const unknown = Object.keys(inputs).filter((name) => !known.has(name));
  return {
    diagnostics: unknown.map((name) => toErrorDiagnostic("There is no such parameter.", name)),
    parameters,
  };
};

const findValueProblem = (parameter: ManifestParameter, value: string | undefined): Diagnostic | undefined => {
  if (value === undefined)
    return toErrorDiagnostic("A value is required.", `The parameter ${parameter.name} has no default.`, "required");
  const reason = checkValue(parameter, value);
  return reason ? toErrorDiagnostic("The value is not valid.", reason) : undefined;
};

const toTextValue = (value: string | undefined) => ({ value: value ?? "", valid: value !== undefined });

const presentParameter = (
  parameter: ManifestParameter,
  order: number,
  value: string | undefined,
  diagnostics: Diagnostic[],
): DynamicParameter => {
  const { validation } = parameter;
  return {
    name: parameter.name,
    display_name: parameter.display_name ?? "",
    description: parameter.description ?? "",
    type: getType(parameter),
    form_type: getFormType(parameter),
    styling: parameter.styling ?? {},
    mutable: parameter.mutable ?? false,
    default_value: toTextValue(formatDefault(parameter)),
    icon: parameter.icon ?? "",
    options: (parameter.options ?? []).map((option) => ({
      name: option.name,
      description: option.description ?? "",
      value: toTextValue(option.value),
      icon: option.icon ?? "",
    })),
    validations: validation
      ? [
          {
            validation_error: validation.error ?? "",
            validation_regex: validation.regex ?? null,
            validation_min: validation.min ?? null,
            validation_max: validation.max ?? null,
            validation_monotonic: validation.monotonic ?? null,
          },
        ]
      : [],
    required: parameter.default === undefined,
    order,
    ephemeral: parameter.ephemeral ?? false,
    value: toTextValue(value),
    diagnostics,
  };
};
