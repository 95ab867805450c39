// Parameters that depend on others: whether one is shown, its options, and its default. Conditions depend only on parameters further up
// (the import checks that), so one pass from top to bottom is enough (rules DY-1 to DY-3). Pure.
import type { ManifestCondition, ManifestParameter } from "#schema/templates/manifest.ts";

type Values = Readonly<Record<string, string>>;

/** Returns true if every named parameter has one of the wanted values. A parameter without a value matches none. */
const isMet = (condition: ManifestCondition | undefined, values: Values): boolean =>
  Object.entries(condition ?? {}).every(([name, wanted]) => {
    const value = Object.hasOwn(values, name) ? values[name] : undefined;
    return [wanted].flat().some((one) => String(one) === value);
  });

/** Returns the parameter as it applies to the values above it; undefined if it is not shown. */
export const applyConditions = (parameter: ManifestParameter, values: Values): ManifestParameter | undefined => {
  const { when, defaults, options, ...rest } = parameter;
  if (!isMet(when, values)) return undefined;
  const fallback = defaults?.find((one) => isMet(one.when, values))?.value ?? rest.default;
  const offered = options?.filter((option) => isMet(option.when, values));
  const isOffered =
    !offered || parameter.type === "list(string)" || offered.some(({ value }) => value === String(fallback));
  const { default: _, ...bare } = rest;
  return {
    ...bare,
    ...(offered ? { options: offered } : {}),
    // A default that is not among the offered options is dropped.
    ...(fallback !== undefined && isOffered ? { default: fallback } : {}),
  };
};
