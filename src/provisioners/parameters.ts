// Validates the values of a build's parameters and of a version's variables, and determines the values that apply (facts/platform 3.2 and
// 9.4). Used by the import, and by all code that creates a build. Pure.

import { AppError, type Validation } from "#base/errors.ts";
import { tryParseJson } from "#base/json/read.ts";
import type { Manifest, ManifestParameter, ManifestPreset, ManifestVariable } from "#schema/templates/manifest.ts";
import { applyConditions } from "./conditions.ts";
import { matchesPattern, withSharedEffort } from "./pattern.ts";

/** Maximum characters of a value. */
const MAX_VALUE_CHARS = 65_536;
/** Maximum characters of a value with a pattern. */
const MAX_PATTERN_VALUE_CHARS = 4_096;
const MAX_LIST_ITEMS = 256;
/** Maximum characters of a number. */
const MAX_NUMBER_CHARS = 32;
/** Maximum number of options named in an error, and characters of each. */
const MAX_OPTIONS_SHOWN = 20;
const MAX_SHOWN_CHARS = 80;

export const getType = (parameter: { type?: ManifestParameter["type"] }): NonNullable<ManifestParameter["type"]> =>
  parameter.type ?? "string";

/** Returns the default as text; undefined if a value is required. */
export const formatDefault = (declared: { default?: string | number | boolean }): string | undefined =>
  declared.default === undefined ? undefined : String(declared.default);

/** Returns the kind of form control for a parameter. */
export const getFormType = (parameter: ManifestParameter): string => {
  if (parameter.form_type) return parameter.form_type;
  const type = getType(parameter);
  if (type === "list(string)") return parameter.options ? "multi-select" : "tag-select";
  if (parameter.options) return "radio";
  return type === "bool" ? "checkbox" : "input";
};

/** Returns why the value is not valid; undefined if it is. `previous`: the value of the previous build. */
export const checkValue = (parameter: ManifestParameter, value: string, previous?: string): string | undefined => {
  if (value.length > MAX_VALUE_CHARS) return `must be at most ${MAX_VALUE_CHARS} characters long`;
  if (value.includes("\0")) return "must not contain NUL";
  const typeProblem = checkType(parameter, value);
  if (typeProblem) return typeProblem;
  return checkOptions(parameter, value) ?? checkValidation(parameter, value, previous);
};

const NUMBER_PATTERN = /^-?\d+(?:\.\d+)?$/;
const INTEGER_PATTERN = /^-?\d+$/;
const [MIN_INTEGER, MAX_INTEGER] = [-(2n ** 63n), 2n ** 63n - 1n];

/** Number rules apply to 64-bit integers, as in the Terraform provider (facts/terraform 4.7). */
const parseInteger = (value: string | undefined): bigint | undefined => {
  if (value === undefined || value.length > MAX_NUMBER_CHARS || !INTEGER_PATTERN.test(value)) return undefined;
  const number = BigInt(value);
  return number >= MIN_INTEGER && number <= MAX_INTEGER ? number : undefined;
};

const checkType = (parameter: ManifestParameter, value: string): string | undefined => {
  switch (getType(parameter)) {
    case "number":
      if (value.length > MAX_NUMBER_CHARS) return `must be a number of at most ${MAX_NUMBER_CHARS} characters`;
      if (!NUMBER_PATTERN.test(value)) return "must be a number in digits, such as 5 or -0.5";
      return parameter.validation && parseInteger(value) === undefined ? "must be a whole number" : undefined;
    case "bool":
      return value === "true" || value === "false" ? undefined : "must be true or false";
    case "list(string)":
      return parseList(value) ? undefined : `must be a JSON list of at most ${MAX_LIST_ITEMS} strings`;
    case "string":
      return undefined;
  }
};

const parseList = (value: string): string[] | undefined => {
  const list = tryParseJson(value);
  const isValid = Array.isArray(list) && list.length <= MAX_LIST_ITEMS && list.every((one) => typeof one === "string");
  return isValid ? (list as string[]) : undefined;
};

const checkOptions = (parameter: ManifestParameter, value: string): string | undefined => {
  if (!parameter.options) return undefined;
  const allowed = new Set(parameter.options.map((option) => option.value));
  // The options themselves may be lists, one of which is the value.
  const isSingle = getType(parameter) !== "list(string)" || allowed.has(value);
  const chosen = isSingle ? [value] : (parseList(value) ?? []);
  return chosen.every((one) => allowed.has(one)) ? undefined : `must be one of ${formatShortList([...allowed])}`;
};

/** Returns the first options, followed by the number of the others. */
const formatShortList = (options: readonly string[]): string => {
  const shown = options
    .slice(0, MAX_OPTIONS_SHOWN)
    .map((option) => (option.length > MAX_SHOWN_CHARS ? `${option.slice(0, MAX_SHOWN_CHARS)}…` : option));
  const moreCount = options.length - shown.length;
  return moreCount > 0 ? `${shown.join(", ")} and ${moreCount} more` : shown.join(", ");
};

const checkValidation = (parameter: ManifestParameter, value: string, previous?: string): string | undefined => {
  const { validation } = parameter;
  if (!validation) return undefined;
  if (validation.regex !== undefined) {
    if (value.length > MAX_PATTERN_VALUE_CHARS) return `must be at most ${MAX_PATTERN_VALUE_CHARS} characters long`;
    // Every value matches a pattern that only Terraform can read, because Terraform checks the value in its plan.
    const isMatch = matchesPattern(validation.regex, value);
    if (isMatch === undefined) return `can't be compared with ${validation.regex}: that takes too long`;
    if (!isMatch) return validation.error ?? `must match ${validation.regex}`;
  }
  const { min, max, monotonic } = validation;
  const number = parseInteger(value);
  if (number === undefined) return undefined;
  const formatError = (text: string): string =>
    (validation.error ?? text)
      .replaceAll("{min}", String(min ?? ""))
      .replaceAll("{max}", String(max ?? ""))
      .replaceAll("{value}", value);
  if (min !== undefined && number < min) return formatError(`must be at least ${min}`);
  if (max !== undefined && number > max) return formatError(`must be at most ${max}`);
  const previousNumber = parseInteger(previous);
  if (monotonic === undefined || previousNumber === undefined) return undefined;
  if (monotonic === "increasing") return number < previousNumber ? `can only grow; it was ${previous}` : undefined;
  return number > previousNumber ? `can only shrink; it was ${previous}` : undefined;
};

export type ParameterValue = { readonly name: string; readonly value: string };

export type ParameterInput = {
  readonly manifest: Manifest;
  /** `rich_parameter_values` of the request. */
  readonly given: readonly ParameterValue[];
  /** The values of the previous build; undefined for the first build. */
  readonly previous?: Readonly<Record<string, string>>;
  /** Provides values for parameters that are not given, and overrides given ones (facts/platform 3.2). */
  readonly preset?: ManifestPreset;
};

/**
 * Returns all values of a build, by parameter name. If a value is not given, uses the value of the previous build (unless the parameter is
 * ephemeral), or else the default. Throws 400 with one validation entry for each unknown, missing, repeated, immutable or invalid value.
 */
export const resolveParameters = (input: ParameterInput): Record<string, string> =>
  withSharedEffort(() => resolve(input));

const resolve = ({ manifest, given, previous, preset }: ParameterInput): Record<string, string> => {
  const parameters = manifest.parameters ?? [];
  const known = new Set(parameters.map(({ name }) => name));
  const validations: Validation[] = [];
  const requested = new Map<string, string>();
  for (const { name, value } of given) {
    if (!known.has(name)) validations.push({ field: name, detail: "the template has no parameter of this name" });
    else if (requested.has(name)) validations.push({ field: name, detail: "is given twice" });
    else requested.set(name, value);
  }
  for (const [name, value] of Object.entries(preset?.parameters ?? {})) requested.set(name, String(value));
  const values: Record<string, string> = {};
  for (const declared of parameters) {
    const { name } = declared;
    const parameter = applyConditions(declared, values);
    // A parameter that is not shown has no value, even if a form sends one.
    if (!parameter) continue;
    const previousValue = previous && Object.hasOwn(previous, name) ? previous[name] : undefined;
    const value = requested.get(name) ?? (parameter.ephemeral ? undefined : previousValue) ?? formatDefault(parameter);
    const reason = findValueProblem(parameter, value, previousValue);
    if (reason) validations.push({ field: name, detail: reason });
    else values[name] = value as string;
  }
  if (validations.length > 0) throw new AppError("invalid", "Parameter values are invalid.", { validations });
  return values;
};

const findValueProblem = (
  parameter: ManifestParameter,
  value: string | undefined,
  previous: string | undefined,
): string | undefined => {
  if (value === undefined) return "is required";
  if (previous !== undefined && !parameter.mutable && value !== previous)
    return "cannot be changed after the workspace was created";
  return checkValue(parameter, value, previous);
};

/** Returns the values of the parameters that the next build reuses. */
export const listReusedParameters = (manifest: Manifest, values: Readonly<Record<string, string>>): ParameterValue[] =>
  (manifest.parameters ?? [])
    .filter(({ name, ephemeral }) => !ephemeral && Object.hasOwn(values, name))
    .map(({ name }) => ({ name, value: values[name] as string }));

/** Returns the values of a version's variables, the names of variables without a value, and the problems of invalid values. */
export const resolveVariables = (
  variables: readonly ManifestVariable[],
  given: Readonly<Record<string, string>>,
): { values: Record<string, string>; missing: string[]; invalid: Validation[] } => {
  const values: Record<string, string> = {};
  const missing: string[] = [];
  const invalid: Validation[] = [];
  for (const variable of variables) {
    const value = Object.hasOwn(given, variable.name) ? given[variable.name] : formatDefault(variable);
    if (value === undefined) {
      missing.push(variable.name);
      continue;
    }
    const reason = checkValue({ name: variable.name, type: variable.type }, value);
    if (reason) invalid.push({ field: variable.name, detail: reason });
    else values[variable.name] = value;
  }
  return { values, missing, invalid };
};
