// Parameters that depend on others: whether one is asked, which options it offers, what its default is. Conditions look only at
// parameters further up (the import checks that), so one pass from top to bottom is enough (rules DY-1 to DY-3). Pure.
import type { ManifestCondition, ManifestParameter } from "#schema/templates/manifest.ts";

type Values = Readonly<Record<string, string>>;

/** Whether every named parameter has one of the wanted values. What has no value has none of them. */
const holds = (condition: ManifestCondition | undefined, values: Values): boolean =>
  Object.entries(condition ?? {}).every(([name, wanted]) => {
    const value = Object.hasOwn(values, name) ? values[name] : undefined;
    return [wanted].flat().some((one) => String(one) === value);
  });

/** The parameter as it is asked once those above it have these values; undefined when it is not asked. */
export const parameterFor = (parameter: ManifestParameter, values: Values): ManifestParameter | undefined => {
  const { when, defaults, options, ...rest } = parameter;
  if (!holds(when, values)) return undefined;
  const fallback = defaults?.find((one) => holds(one.when, values))?.value ?? rest.default;
  const offered = options?.filter((option) => holds(option.when, values));
  const isOffered =
    !offered || parameter.type === "list(string)" || offered.some(({ value }) => value === String(fallback));
  const { default: _, ...bare } = rest;
  return {
    ...bare,
    ...(offered ? { options: offered } : {}),
    // A default that is not offered now is none.
    ...(fallback !== undefined && isOffered ? { default: fallback } : {}),
  };
};
