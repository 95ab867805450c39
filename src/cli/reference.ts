// The lists in docs/cli.md and docs/configuration.md that are generated from the code: all commands, and the settings of commands other
// than the server. test/cli/reference.test.ts compares them.
import { CLIENT_ENV_PREFIX, CLIENT_SETTINGS } from "#base/config/client-settings.ts";
import { DAEMON_ENV_PREFIX, DAEMON_SETTINGS } from "#base/config/daemon-settings.ts";
import { formatSettingsTable } from "#base/config/describe.ts";
import type { SettingsTable } from "#base/config/setting.ts";
import { WORKER_ENV_PREFIX, WORKER_SETTINGS } from "#base/config/worker-settings.ts";
import { formatUsage } from "./help.ts";
import { VERBS } from "./verbs.ts";

const escapeCell = (text: string): string => text.replaceAll("|", "\\|");

const formatRow = (call: string, help: string): string => `| \`slipway ${escapeCell(call)}\` | ${escapeCell(help)} |`;

const formatVerbs = (): string => {
  const rows = VERBS.flatMap(({ name, usage, help, words = [], isCalledAlone }) => [
    ...(words.length === 0 || isCalledAlone ? [formatRow(`${name} ${usage}`, help)] : []),
    ...words.map((word) => formatRow(`${name} ${formatUsage(word)}`, word.help)),
  ]);
  return ["| command | what it does |", "|---|---|", ...rows].join("\n");
};

const printSettings = (table: SettingsTable, prefix: string) => (): string => formatSettingsTable(table, prefix, false);

/** The generated blocks by marker name, `<!-- name -->` and `<!-- /name -->`. */
export const REFERENCE: Readonly<Record<string, () => string>> = {
  verbs: formatVerbs,
  "client settings": printSettings(CLIENT_SETTINGS, CLIENT_ENV_PREFIX),
  "worker settings": printSettings(WORKER_SETTINGS, WORKER_ENV_PREFIX),
  "daemon settings": printSettings(DAEMON_SETTINGS, DAEMON_ENV_PREFIX),
};
