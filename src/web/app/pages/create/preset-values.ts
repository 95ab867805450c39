// Determines which of the user's values a preset overrides. Pure.
import type { Preset } from "#schema/templates/template-version.ts";

type Values = Readonly<Record<string, string>>;

/** Returns the user's values that the preset changes. */
export const findReplaced = ({ parameters }: Pick<Preset, "parameters">, given: Values): Values =>
  Object.fromEntries(
    parameters.flatMap(({ name, value }) => {
      const own = given[name];
      return own === undefined || own === value ? [] : [[name, own]];
    }),
  );

/** Describes them in one line; empty if none exist. */
export const describeReplaced = (preset: string, replaced: Values): string => {
  const was = Object.entries(replaced).map(([name, value]) => `${name} (was "${value}")`);
  return was.length === 0 ? "" : `The preset "${preset}" replaced ${was.join(", ")}. Choose "Custom" to restore.`;
};
