// Generates all descriptions of settings from the tables: help text, `config show`, the example file and the table in docs/configuration.md
// (rule CF-1). Secrets are never printed (rule CF-5).
import type { LoadedSettings } from "./resolve.ts";
import { listSecretKeys, toFileKey } from "./secret-files.ts";
import { formatDefault, type Setting, type SettingsTable, toFlag, toVariableName } from "./setting.ts";

const HIDDEN = "(hidden)";
const WIDTH = 100;

/** Returns the settings part of a command's `--help`. */
export const formatSettingsHelp = (table: SettingsTable, prefix = "SLIPWAY_"): string => {
  const keysWithFile = new Set(listSecretKeys(table));
  return groupSettings(table)
    .map(([group, rows]) => {
      const lines = rows.map(([key, one]) => {
        const head = [toFlag(key), one.kind.placeholder].filter(Boolean).join(" ");
        const file = keysWithFile.has(key)
          ? ` Or ${toFlag(toFileKey(key))}, ${toVariableName(toFileKey(key), prefix)}: a file that holds it.`
          : "";
        const facts = `Variable ${toVariableName(key, prefix)}. Default: ${formatDefault(one)}.${file}`;
        return `  ${head}\n${wrap(`${one.help} ${facts}`, "      ")}`;
      });
      return `${group}\n${lines.join("\n")}`;
    })
    .join("\n\n");
};

/** One row of `config show`: the value as text, or null when there is no value. */
export interface SettingRow {
  key: string;
  value: string | null;
  from: string;
  name: string;
}

/** Returns the effective values and their sources; secrets and passwords in URLs are shown as `(hidden)`. */
export const describeSettings = <T extends SettingsTable>(table: T, loaded: LoadedSettings<T>): SettingRow[] =>
  Object.entries(table).map(([key, one]) => {
    const value = loaded.config[key];
    const shownValue = value === undefined ? null : one.secret ? HIDDEN : redactPasswords(one.kind.print(value));
    const source = loaded.sources[key];
    return { key, value: shownValue, from: source?.from ?? "default", name: source?.name ?? "default" };
  });

const redactPasswords = (text: string): string => text.replace(/(:\/\/[^\s/:@]*:)[^\s/]+@/g, `$1${HIDDEN}@`);

/** Formats `config show` for people: key, value and source in columns. */
export const formatSettingsListing = (rows: readonly SettingRow[]): string => {
  const cells = rows.map((row) => {
    const value = row.value === null ? "(not set)" : row.value || "(none)";
    return [row.key, value, row.from === "default" ? "default" : `${row.from} ${row.name}`];
  });
  const widths = [0, 1].map((column) => Math.max(...cells.map((cell) => cell[column]?.length ?? 0)));
  return cells
    .map((cell) =>
      cell
        .map((part, column) => part.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
};

/** Returns a settings file with every setting explained and commented out; used unchanged, it has no effect. */
export const formatExampleFile = (table: SettingsTable): string => {
  const keysWithFile = new Set(listSecretKeys(table));
  const head =
    "# Settings of the Slipway server. Every line that begins with `#key:` shows the default or an example;\n";
  const usage = "# remove the # to change it. Flags and SLIPWAY_* variables win over this file.\n";
  const groups = groupSettings(table).map(([group, rows]) => {
    const entries = rows
      .filter(([, one]) => one.file !== false)
      .map(([key, one]) => {
        const file = keysWithFile.has(key) ? ` Or ${toFileKey(key)}: a file that holds it.` : "";
        const facts = `Form: ${one.kind.accepts}. Default: ${formatDefault(one)}.${file}`;
        const value = one.default === undefined ? "" : one.kind.print(one.default);
        return `${wrap(`${one.help} ${facts}`, "# ")}\n#${key}: ${toYamlScalar(value)}\n`;
      });
    return entries.length === 0 ? "" : `\n# --- ${group} ---\n\n${entries.join("\n")}`;
  });
  return head + usage + groups.join("");
};

/**
 * Returns the table between the markers `<!-- settings -->` and `<!-- /settings -->` of docs/configuration.md. `hasFile`: a settings file
 * is also read.
 */
export const formatSettingsTable = (table: SettingsTable, prefix = "SLIPWAY_", hasFile = true): string => {
  const escapeCell = (text: string): string => text.replaceAll("|", "\\|");
  const keysWithFile = new Set(listSecretKeys(table));
  const rows = Object.entries(table).map(([key, one]) => {
    const names = [toFlag(key), toVariableName(key, prefix), ...(one.file === false || !hasFile ? [] : [key])].map(
      (name) => `\`${name}\``,
    );
    const fallback = one.default === undefined ? formatDefault(one) : `\`${formatDefault(one)}\``;
    const file = keysWithFile.has(key)
      ? ` Or a file that holds it: \`${toFlag(toFileKey(key))}\`, \`${toVariableName(toFileKey(key), prefix)}\`.`
      : "";
    return `| ${names.join("<br>")} | ${escapeCell(fallback)} | ${escapeCell(`${one.help} Form: ${one.kind.accepts}.${file}`)} |`;
  });
  return [`| flag, variable${hasFile ? ", file key" : ""} | default | meaning |`, "|---|---|---|", ...rows].join("\n");
};

function groupSettings(table: SettingsTable): [string, [string, Setting<unknown>][]][] {
  const groups = Map.groupBy(Object.entries(table), ([, one]) => one.group);
  return [...groups];
}

// Quotes text that YAML would parse as something else: numbers, brackets, colons, empty text.
function toYamlScalar(value: string): string {
  return /^[A-Za-z./][\w./-]*$/.test(value) || /^\d+$/.test(value) ? value : JSON.stringify(value);
}

function wrap(text: string, indent: string): string {
  const lines = [indent.trimEnd()];
  for (const word of text.split(" ")) {
    const last = lines[lines.length - 1] ?? "";
    const hasWords = last.length > indent.trimEnd().length;
    if (hasWords && last.length + word.length + 1 > WIDTH) lines.push(indent + word);
    else lines[lines.length - 1] = hasWords ? `${last} ${word}` : indent + word;
  }
  return lines.join("\n");
}
