// Determines whether a template's parameters depend on data that only a plan knows, such as other values or the user, and which data
// sources the plan of a form must include (facts/terraform 4.4, 4.5). Reads a plan's `configuration`. Pure.
import type { ConfiguredModule, Values } from "./mapping/document.ts";

const PARAMETER_TYPES = new Set(["coder_parameter", "coder_workspace_preset", "coder_workspace_tags"]);

type DataSource = { readonly address: string; readonly expressions: Values; readonly source: Values };

const listDataSources = (module: ConfiguredModule | undefined, prefix = ""): DataSource[] => [
  ...(module?.resources ?? [])
    .filter(({ mode, type }) => mode === "data" && PARAMETER_TYPES.has(type ?? ""))
    .map((resource) => ({
      address: `${prefix}data.${resource.type}.${resource.name}`,
      expressions: (resource.expressions ?? {}) as Values,
      source: resource,
    })),
  ...Object.entries(module?.module_calls ?? {}).flatMap(([name, call]) =>
    listDataSources(call.module, `${prefix}module.${name}.`),
  ),
];

/** Returns the addresses of the data sources that a form must plan, without indexes. */
export const listFormTargets = (module: ConfiguredModule | undefined): string[] =>
  listDataSources(module).map(({ address }) => address);

/** Returns the names of parameters by address without indexes. Omits names that are not constants. */
export const listParameterNames = (module: ConfiguredModule | undefined): Map<string, string> =>
  new Map(
    listDataSources(module)
      .filter(({ address }) => address.includes("data.coder_parameter."))
      .flatMap(({ address, expressions }) => {
        const name = (expressions.name as { constant_value?: unknown } | undefined)?.constant_value;
        return typeof name === "string" ? [[address, name] as const] : [];
      }),
  );

/** Returns true unless all expressions of the form's data sources use only constants and variables. */
export const isDynamic = (module: ConfiguredModule | undefined): boolean =>
  listDataSources(module).some(({ address, expressions, source }) => {
    const { count_expression, for_each_expression } = source;
    const references = listReferences({ expressions, count_expression, for_each_expression });
    // The variables of a child module may depend on anything.
    return references.some((name) => address.startsWith("module.") || !name.startsWith("var."));
  });

const listReferences = (value: unknown): string[] => {
  if (Array.isArray(value)) return value.flatMap(listReferences);
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    key === "references" && Array.isArray(inner) ? inner.map(String) : listReferences(inner),
  );
};
