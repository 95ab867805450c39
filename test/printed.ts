// `bun run docs`: writes everything in the repository that code prints, such as the tables of commands, settings, alerts, roles and
// packages. test/house/printed.test.ts compares each file with what the code prints now.
import { writeFileSync } from "node:fs";
import { printTable } from "#actors/chat/machine/print-table.ts";
import { CLIENT_ENV_PREFIX, CLIENT_SETTINGS } from "#base/config/client-settings.ts";
import { DAEMON_ENV_PREFIX, DAEMON_SETTINGS } from "#base/config/daemon-settings.ts";
import { formatSettingsTable } from "#base/config/describe.ts";
import { WORKER_ENV_PREFIX, WORKER_SETTINGS } from "#base/config/worker-settings.ts";
import { formatSettingsMarkdown } from "#base/config.ts";
import { alertRules, alertTable, dashboardJson } from "#src/api/metrics/print-monitoring.ts";
import { formatUsage } from "#src/cli/help.ts";
import { VERBS } from "#src/cli/verbs.ts";
import { formatThirdParty } from "#src/supply-chain.ts";
import { roleDocs } from "./api/access-docs.ts";
import { ROOT, readPage } from "./support/documents.ts";

const formatRow = (call: string, help: string): string =>
  `| ${[`\`slipway ${call}\``, help].map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;

/** Returns the table of all commands. */
const formatVerbTable = (): string => {
  const rows = VERBS.flatMap(({ name, usage, help, subcommands = [], isCalledAlone }) => [
    ...(subcommands.length === 0 || isCalledAlone ? [formatRow(`${name} ${usage}`, help)] : []),
    ...subcommands.map((subcommand) => formatRow(`${name} ${formatUsage(subcommand)}`, subcommand.help)),
  ]);
  return ["| command | what it does |", "|---|---|", ...rows].join("\n");
};

/** The blocks of pages, by their marks, such as `<!-- verbs -->` and `<!-- /verbs -->`. */
const BLOCKS = {
  verbs: formatVerbTable,
  settings: formatSettingsMarkdown,
  "client settings": () => formatSettingsTable(CLIENT_SETTINGS, CLIENT_ENV_PREFIX, false),
  "worker settings": () => formatSettingsTable(WORKER_SETTINGS, WORKER_ENV_PREFIX, false),
  "daemon settings": () => formatSettingsTable(DAEMON_SETTINGS, DAEMON_ENV_PREFIX, false),
  alerts: alertTable,
  transitions: () => printTable().trimEnd(),
} satisfies Record<string, () => string>;

/** Returns a function that replaces these blocks of a page. */
const printBlocks =
  (...names: readonly (keyof typeof BLOCKS)[]) =>
  (page: string): string =>
    names.reduce((text, name) => {
      const [before, block, after] = text.split(new RegExp(`(?<=<!-- ${name} -->\n)|(?=<!-- /${name} -->)`));
      if (block === undefined || after === undefined) throw new Error(`the page has no block <!-- ${name} -->`);
      return `${before}${BLOCKS[name]()}\n${after}`;
    }, page);

/** Each printed file, and what prints it. All other text of a page with blocks is written by hand. */
export const PRINTED: readonly (readonly [file: string, print: (now: string) => string])[] = [
  ["docs/cli.md", printBlocks("verbs")],
  ["docs/configuration.md", printBlocks("settings", "client settings", "worker settings", "daemon settings")],
  ["docs/monitoring.md", printBlocks("alerts")],
  ["deploy/monitoring/grafana-dashboard.json", dashboardJson],
  ["deploy/monitoring/alerts.yaml", alertRules],
  ["actors/chat/README.md", printBlocks("transitions")],
  ["src/api/ACCESS.md", roleDocs],
  ["THIRD_PARTY.md", () => formatThirdParty()],
];

if (import.meta.main) {
  for (const [file, print] of PRINTED) {
    const current = readPage(file);
    const printed = print(current);
    if (printed === current) continue;
    writeFileSync(ROOT + file, printed);
    process.stdout.write(`${file}\n`);
  }
}
