// Collects the values of a settings table from the command line, the environment and the file, as text with its source. Used by resolve.ts.
// Rejects unknown names and says where they were found.
import { parseArgs } from "node:util";
import type { Problem } from "#base/usage-error.ts";
import { type SettingsTable, toFlag, toVariableName } from "./setting.ts";
import { suggestSetting } from "./suggest.ts";

/** The text of one setting, and where it was found. */
export interface RawSetting {
  key: string;
  /** As written: `--address`, `SLIPWAY_ADDRESS` or `address`. */
  name: string;
  from: "flag" | "env" | "file";
  /** `command line`, `environment`, or the file's path. */
  source: string;
  /** Undefined when the value has a type that no setting takes, such as a mapping. */
  text: string | undefined;
}

export interface ReadResult {
  given: RawSetting[];
  problems: Problem[];
}

/** `--key value`, `--key=value`, and for switches `--key` alone. */
export const readFlags = (table: SettingsTable, argv: readonly string[]): ReadResult => {
  const result: ReadResult = { given: [], problems: [] };
  const keys = new Map(Object.keys(table).map((key) => [toFlag(key).slice(2), key]));
  const options = Object.fromEntries(
    [...keys].map(([name, key]) => [name, { type: table[key]?.kind.bare ? "boolean" : "string" } as const]),
  );
  const source = "command line";
  const { tokens } = parseArgs({ args: [...argv], options, strict: false, tokens: true, allowPositionals: true });
  // The token after an unknown flag is assumed to be its value and not reported again.
  let afterUnknown = -1;
  for (const token of tokens) {
    if (token.kind === "positional") {
      if (token.index === afterUnknown) continue;
      result.problems.push({ name: token.value, from: source, detail: "unexpected argument" });
    } else if (token.kind === "option") {
      const key = keys.get(token.name);
      if (key === undefined) {
        const hint = suggestSetting(token.rawName, [...keys.values()], toFlag);
        result.problems.push({ name: token.rawName, from: source, detail: `unknown setting.${hint}` });
        afterUnknown = token.inlineValue === undefined ? token.index + 1 : -1;
        continue;
      }
      const text = token.value ?? (table[key]?.kind.bare ? "true" : undefined);
      // In `--address --data-dir x`, the value is missing; it is not "--data-dir".
      const isValueMissing = token.inlineValue === false && text?.startsWith("--");
      result.given.push({ key, name: token.rawName, from: "flag", source, text: isValueMissing ? undefined : text });
    }
  }
  return result;
};

/** Reads variables with the prefix. An empty variable is treated as not set. `otherVariables` belong to other programs. */
export const readEnv = (
  table: SettingsTable,
  env: Readonly<Record<string, string | undefined>>,
  prefix: string,
  otherVariables: readonly string[],
): ReadResult => {
  const result: ReadResult = { given: [], problems: [] };
  const keys = new Map(Object.keys(table).map((key) => [toVariableName(key, prefix), key]));
  const source = "environment";
  for (const [name, text] of Object.entries(env)) {
    if (!name.startsWith(prefix) || !text) continue;
    const key = keys.get(name);
    if (key !== undefined) result.given.push({ key, name, from: "env", source, text });
    else if (!otherVariables.includes(name)) {
      const detail = `unknown setting.${suggestSetting(name, [...keys.values()], (key) => toVariableName(key, prefix))}`;
      result.problems.push({ name, from: source, detail });
    }
  }
  return result;
};

/** Reads variables of other programs, such as DOCKER_HOST, for settings that `results` do not contain. */
export const readOtherVariables = (
  table: SettingsTable,
  env: Readonly<Record<string, string | undefined>>,
  results: readonly ReadResult[],
): ReadResult => {
  const isGiven = (key: string): boolean => results.some(({ given }) => given.some((one) => one.key === key));
  const given = Object.entries(table).flatMap(([key, { otherVariable: name }]): RawSetting[] => {
    const text = name === undefined || isGiven(key) ? undefined : env[name];
    return name && text ? [{ key, name, from: "env", source: "environment", text }] : [];
  });
  return { given, problems: [] };
};

/** Reads a YAML mapping of keys to scalars or lists of scalars. */
export const readSettingsFile = (table: SettingsTable, source: string, content: string): ReadResult => {
  const result: ReadResult = { given: [], problems: [] };
  const keys = Object.keys(table).filter((key) => table[key]?.file !== false);
  let parsed: unknown;
  try {
    parsed = Bun.YAML.parse(content) ?? {};
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { given: [], problems: [{ name: "config", from: source, detail: `not valid YAML: ${reason}` }] };
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) {
    const detail = "expected a YAML mapping of settings, such as `address: 127.0.0.1:7080`";
    return { given: [], problems: [{ name: "config", from: source, detail }] };
  }
  for (const name of findDuplicateKeys(content)) {
    result.problems.push({ name, from: source, detail: "is set more than once in the file" });
  }
  for (const [name, value] of Object.entries(parsed)) {
    if (keys.includes(name)) {
      const kind = table[name]?.kind;
      const text =
        kind?.structured && typeof value === "object"
          ? JSON.stringify(value)
          : toScalarText(value, kind?.list === true);
      result.given.push({ key: name, name, from: "file", source, text });
    } else {
      const advice = name in table ? " It can only be a flag or an environment variable." : suggestSetting(name, keys);
      result.problems.push({ name, from: source, detail: `unknown setting.${advice}` });
    }
  }
  return result;
};

/** Returns keys that start more than one line; the parser would silently use the last one. */
const findDuplicateKeys = (content: string): string[] => {
  const names = [...content.matchAll(/^([a-z_]+)\s*:/gm)].map(([, name = ""]) => name);
  return [...new Set(names.filter((name, i) => names.indexOf(name) !== i))];
};

function toScalarText(value: unknown, list: boolean): string | undefined {
  if (typeof value === "string") return value;
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  if (!list || !Array.isArray(value)) return undefined;
  const items = value.map((item) => toScalarText(item, false));
  return items.every((item) => item !== undefined) ? items.join(",") : undefined;
}
