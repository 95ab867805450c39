// Determines which of the user's values a preset overrides. Pure.
import type { Preset } from "#schema/templates/template-version.ts";

type Values = Readonly<Record<string, string>>;

/** Returns the user's values that the preset changes. */
export const findReplaced = ({ parameters }: Pick<Preset, "parameters">, userValues: Values): Values =>
  Object.fromEntries(
    parameters.flatMap(({ name, value }) => {
      const userValue = userValues[name];
      return userValue === undefined || userValue === value ? [] : [[name, userValue]];
    }),
  );

/** Describes them in one line; empty if none exist. */
export const describeReplaced = (preset: string, replaced: Values): string => {
  const oldValues = Object.entries(replaced).map(([name, value]) => `${name} (was "${value}")`);
  return oldValues.length === 0
    ? ""
    : `The preset "${preset}" replaced ${oldValues.join(", ")}. Choose "Custom" to restore.`;
};
