// Applies the conditions of parameters: whether a parameter is shown, its options, and its default. The import ensures that conditions
// depend only on earlier parameters, so one pass from the first to the last parameter is enough (rules DY-1 to DY-3). Pure.
import type { ManifestCondition, ManifestParameter } from "#schema/templates/manifest.ts";

type Values = Readonly<Record<string, string>>;

/** Returns true if every parameter in the condition has one of the listed values. */
const isMet = (condition: ManifestCondition | undefined, values: Values): boolean =>
  Object.entries(condition ?? {}).every(([name, allowed]) => {
    const value = Object.hasOwn(values, name) ? values[name] : undefined;
    return [allowed].flat().some((one) => String(one) === value);
  });

/** Returns the parameter for these values of the earlier parameters; undefined if it is not shown. */
export const applyConditions = (parameter: ManifestParameter, values: Values): ManifestParameter | undefined => {
  const { when, defaults, options, ...base } = parameter;
  if (!isMet(when, values)) return undefined;
  const fallback = defaults?.find((one) => isMet(one.when, values))?.value ?? base.default;
  const availableOptions = options?.filter((option) => isMet(option.when, values));
  const isAvailable =
    !availableOptions ||
    parameter.type === "list(string)" ||
    availableOptions.some(({ value }) => value === String(fallback));
  const { default: _, ...withoutDefault } = base;
  return {
    ...withoutDefault,
    ...(availableOptions ? { options: availableOptions } : {}),
    // A default that is not among the available options is dropped.
    ...(fallback !== undefined && isAvailable ? { default: fallback } : {}),
  };
};
