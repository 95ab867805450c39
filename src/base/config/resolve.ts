// Converts the collected text to the typed values of a table. Precedence: flag, environment, file, default (rule CF-2). Rejects everything
// unknown or malformed and reports all problems in one error (rules CF-3, CF-4).
import { type Problem, UsageError } from "#base/usage-error.ts";
import { type RawSetting, type ReadResult, readEnv, readFlags, readOtherVariables, readSettingsFile } from "./read.ts";
import { readSecretFiles, withSecretFiles } from "./secret-files.ts";
import { formatDefault, type Setting, type SettingsTable, type Values } from "./setting.ts";

/** Where a value came from; `name` is the flag, the variable, or the file's path. */
export interface Source {
  from: "flag" | "env" | "file" | "default";
  name: string;
}

export interface LoadedSettings<T extends SettingsTable> {
  config: Values<T>;
  sources: { readonly [K in keyof T]: Source };
}

export interface Input {
  /** The arguments after the command. */
  argv: readonly string[];
  env: Readonly<Record<string, string | undefined>>;
  /** Returns the content of a file; throws when it cannot be read. */
  readFile(path: string): string;
}

/** What a settings table is loaded with. */
export interface SettingsDefinition<T extends SettingsTable> {
  table: T;
  prefix: string;
  /** Variables with the prefix that belong to other tables and are not reported as mistakes. */
  otherVariables: readonly string[];
  /** Checks constraints between several values. */
  checkTogether?(config: Values<T>): Problem[];
}

/** Loads a table. Throws UsageError that names every invalid setting, its source and its accepted format. */
export const loadSettings = <T extends SettingsTable>(
  definition: SettingsDefinition<T>,
  input: Input,
): LoadedSettings<T> => {
  const { table } = definition;
  const withFiles = withSecretFiles(table);
  const results = [
    readFlags(withFiles, input.argv),
    readEnv(withFiles, input.env, definition.prefix, definition.otherVariables),
  ];
  results.push(readConfigFile(withFiles, results, input));
  results.push(readOtherVariables(withFiles, input.env, results));
  const readings = results.map((reading) => readSecretFiles(table, reading, (path) => input.readFile(path)));
  const problems = readings.flatMap((reading) => reading.problems);
  const values: Record<string, unknown> = {};
  const sources: Record<string, Source> = {};
  for (const [key, setting] of Object.entries(table)) {
    values[key] = setting.default;
    sources[key] = { from: "default", name: "default" };
    // Lowest precedence first; every value is validated, even if a source with higher precedence overrides it.
    for (const reading of readings.toReversed()) {
      for (const raw of reading.given.filter((candidate) => candidate.key === key)) {
        const value = raw.text === undefined ? undefined : setting.kind.parse(raw.text);
        if (value === undefined) problems.push(describeMalformed(raw, setting));
        values[key] = value;
        sources[key] = { from: raw.from, name: raw.from === "file" ? raw.source : raw.name };
      }
    }
  }
  // Every key of the table now has a parsed value or its default.
  const loaded = { config: values as Values<T>, sources: sources as LoadedSettings<T>["sources"] };
  if (problems.length === 0) problems.push(...(definition.checkTogether?.(loaded.config) ?? []));
  if (problems.length > 0) throw new UsageError(problems);
  return loaded;
};

function readConfigFile(table: SettingsTable, readings: readonly ReadResult[], input: Input): ReadResult {
  const empty: ReadResult = { given: [], problems: [] };
  if (table.config === undefined) return empty;
  const configFile = readings.map((reading) => reading.given.findLast((raw) => raw.key === "config")).find(Boolean);
  if (configFile?.text === undefined) return empty;
  try {
    return readSettingsFile(table, configFile.text, input.readFile(configFile.text));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return {
      given: [],
      problems: [{ name: configFile.name, from: configFile.source, detail: `cannot be read: ${reason}` }],
    };
  }
}

function describeMalformed(raw: RawSetting, setting: Setting<unknown>): Problem {
  const mistake = raw.text === undefined ? undefined : setting.kind.mistake?.(raw.text);
  const givenText = setting.secret || raw.text === undefined ? "" : `, got ${JSON.stringify(raw.text)}`;
  return {
    name: raw.name,
    from: raw.source,
    detail: `expected ${setting.kind.accepts}${givenText}${mistake ? `; ${mistake}` : ""}. Default: ${formatDefault(setting)}.`,
  };
}
