// `bun run docs`: writes the generated tables into the pages of docs/: every command and every setting. Tests compare them (rules CF-6 and
// CV-14).
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { formatSettingsMarkdown } from "#base/config.ts";
import { alertRules, alertTable, dashboardJson } from "#src/api/metrics/print-monitoring.ts";
import { REFERENCE } from "./reference.ts";

const PAGES = ["docs/cli.md", "docs/configuration.md", "docs/monitoring.md"];
const BLOCKS: Readonly<Record<string, () => string>> = {
  settings: formatSettingsMarkdown,
  alerts: alertTable,
  ...REFERENCE,
};
const FILES = { "grafana-dashboard.json": dashboardJson, "alerts.yaml": alertRules };
const MONITORING = new URL("../../deploy/monitoring/", import.meta.url);

for (const [name, print] of Object.entries(FILES)) writeFileSync(new URL(name, MONITORING), print());

for (const page of PAGES) {
  const file = fileURLToPath(new URL(`../../${page}`, import.meta.url));
  const text = readFileSync(file, "utf8");
  const printed = text.replace(/<!-- ([a-z ]+) -->\n[\s\S]*?<!-- \/\1 -->/g, (whole, name: string) => {
    const block = BLOCKS[name];
    return block ? `<!-- ${name} -->\n${block()}\n<!-- /${name} -->` : whole;
  });
  if (printed !== text) writeFileSync(file, printed);
}
