// Whether what a template asks depends on what was answered, on who asks, or on anything else that only a plan knows; and which parts a
// form has to plan (facts/terraform 4.4, 4.5). Read of a plan's `configuration`. Pure.
import type { ConfiguredModule, Values } from "./mapping/document.ts";

const ASKED = new Set(["coder_parameter", "coder_workspace_preset", "coder_workspace_tags"]);

type Asked = { readonly address: string; readonly expressions: Values; readonly whole: Values };

const askedIn = (module: ConfiguredModule | undefined, at = ""): Asked[] => [
  ...(module?.resources ?? [])
    .filter(({ mode, type }) => mode === "data" && ASKED.has(type ?? ""))
    .map((one) => ({
      address: `${at}data.${one.type}.${one.name}`,
      expressions: (one.expressions ?? {}) as Values,
      whole: one,
    })),
  ...Object.entries(module?.module_calls ?? {}).flatMap(([name, call]) => askedIn(call.module, `${at}module.${name}.`)),
];

/** Addresses of all that is asked, without indices. */
export const formTargets = (module: ConfiguredModule | undefined): string[] =>
  askedIn(module).map(({ address }) => address);

/** Names of parameters, as far as they are written as constants, by their addresses without indices. */
export const parameterNames = (module: ConfiguredModule | undefined): Map<string, string> =>
  new Map(
    askedIn(module)
      .filter(({ address }) => address.includes("data.coder_parameter."))
      .flatMap(({ address, expressions }) => {
        const name = (expressions.name as { constant_value?: unknown } | undefined)?.constant_value;
        return typeof name === "string" ? [[address, name] as const] : [];
      }),
  );

/** True unless every expression of what is asked is made of constants and variables alone. */
export const isDynamic = (module: ConfiguredModule | undefined): boolean =>
  askedIn(module).some(
    ({ address, expressions, whole }) =>
      // What a module is given may come from anywhere.
      (address.startsWith("module.") && referencesIn({ expressions, ...toCounts(whole) }).length > 0) ||
      referencesIn({ expressions, ...toCounts(whole) }).some((name) => !name.startsWith("var.")),
  );

const toCounts = ({ count_expression, for_each_expression }: Values): Values => ({
  count_expression,
  for_each_expression,
});

const referencesIn = (value: unknown): string[] => {
  if (Array.isArray(value)) return value.flatMap(referencesIn);
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    key === "references" && Array.isArray(inner) ? inner.map(String) : referencesIn(inner),
  );
};
