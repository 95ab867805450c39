// What a preset does to values that a person has given already. Pure.
import type { Preset } from "#schema/templates/template-version.ts";

type Values = Readonly<Record<string, string>>;

/** The values a person has given that the preset sets to something else. */
export const replacedBy = ({ parameters }: Pick<Preset, "parameters">, given: Values): Values =>
  Object.fromEntries(
    parameters.flatMap(({ name, value }) => {
      const own = given[name];
      return own === undefined || own === value ? [] : [[name, own]];
    }),
  );

/** One line about them; empty for none. */
export const replacedInWords = (preset: string, replaced: Values): string => {
  const was = Object.entries(replaced).map(([name, value]) => `${name} (was "${value}")`);
  return was.length === 0 ? "" : `The preset "${preset}" replaced ${was.join(", ")}. Choose "Custom" to restore.`;
};
