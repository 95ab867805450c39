// Secrets in files: each secret of a settings table has another setting, `<key>_file`, with the path of a file that contains it. This keeps
// secrets off the command line and out of the environment, which other programs of the same user can read.
import type { Problem } from "#base/usage-error.ts";
import { path } from "./kinds.ts";
import type { RawSetting, ReadResult } from "./read.ts";
import { optional, type SettingsTable, toVariableName } from "./setting.ts";

const FILE = "_file";

/**
 * Returns the secrets of a table that get a `<key>_file` setting. Excludes secrets whose `<key>_file` is already in the table, such as
 * `token_file`.
 */
export const listSecretKeys = (table: SettingsTable): string[] =>
  Object.keys(table).filter((key) => table[key]?.secret && !(key + FILE in table));

/** `admin_password` -> `admin_password_file`. */
export const toFileKey = (key: string): string => key + FILE;

/** Returns the table with the added file settings. */
export const withSecretFiles = (table: SettingsTable): SettingsTable => ({
  ...table,
  ...Object.fromEntries(
    listSecretKeys(table).map((key) => [
      toFileKey(key),
      optional(path, { group: table[key]?.group ?? "", help: `A file that contains ${key}.`, absent: "none" }),
    ]),
  ),
});

/** Returns all variables of a table, including those of the file settings. */
export const listVariables = (table: SettingsTable, prefix?: string): string[] =>
  Object.keys(withSecretFiles(table)).map((key) => toVariableName(key, prefix));

/** Returns the variables with secret values. */
export const listSecretVariables = (table: SettingsTable, prefix?: string): string[] =>
  Object.keys(table)
    .filter((key) => table[key]?.secret)
    .flatMap((key) => [toVariableName(key, prefix), ...(table[key]?.otherVariable ?? [])].flat());

/**
 * Replaces each file name by the content of the file, without a trailing newline. Reports a secret that is given both ways in one source,
 * and files that cannot be read.
 */
export const readSecretFiles = (
  table: SettingsTable,
  { given, problems }: ReadResult,
  readFile: (path: string) => string,
): ReadResult => {
  const keysByFileKey = new Map(listSecretKeys(table).map((key) => [toFileKey(key), key]));
  const result: ReadResult = { given: [], problems: [...problems] };
  for (const setting of given) {
    const key = keysByFileKey.get(setting.key);
    if (key === undefined) result.given.push(setting);
    else {
      const other = given.find((candidate) => candidate.key === key);
      if (other)
        result.problems.push({ ...toProblemSource(setting), detail: `${other.name} is also set; set only one` });
      else readSecretFile(setting, key, readFile, result);
    }
  }
  return result;
};

const toProblemSource = ({ name, source }: RawSetting): Pick<Problem, "name" | "from"> => ({ name, from: source });

const readSecretFile = (one: RawSetting, key: string, readFile: (path: string) => string, result: ReadResult): void => {
  const file = one.text === undefined ? undefined : path.parse(one.text);
  if (file === undefined) {
    result.problems.push({ ...toProblemSource(one), detail: `expected ${path.accepts}` });
    return;
  }
  try {
    result.given.push({ ...one, key, text: readFile(file).replace(/\r?\n$/, "") });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    result.problems.push({ ...toProblemSource(one), detail: `cannot be read: ${reason}` });
  }
};
