// Converts a health report to rows: the checks of `slipway doctor` and those of the server, worst first. Pure.
import type { HealthReport } from "#schema/deployment/health.ts";

export type Check = {
  /** The name by which the check is dismissed. */
  readonly name: string;
  readonly title: string;
  readonly severity: HealthReport["severity"];
  readonly detail: string;
  readonly dismissed: boolean;
};

const ORDER: readonly HealthReport["severity"][] = ["error", "warning", "ok"];

type Section = { severity: Check["severity"]; dismissed: boolean; error?: string; warnings: { message: string }[] };

const makeSection = (name: string, title: string, section: Section, well: string): Check => ({
  name,
  title,
  severity: section.severity,
  dismissed: section.dismissed,
  detail: section.error ?? section.warnings[0]?.message ?? well,
});

export const toChecks = (report: HealthReport): Check[] => {
  const { access_url, database, websocket, derp, provisioner_daemons, findings } = report;
  const workers = provisioner_daemons.items.length;
  const serverChecks = [
    makeSection("AccessURL", "access URL", access_url, `${access_url.access_url} answers`),
    makeSection("Database", "database", database, `a query takes ${database.latency_ms.toFixed(1)} ms`),
    makeSection("Websocket", "WebSockets", websocket, "WebSockets connect at the access URL"),
    makeSection("DERP", "network relay", derp, derp.clients === 1 ? "1 connection" : `${derp.clients} connections`),
    makeSection(
      "ProvisionerDaemons",
      "workers",
      provisioner_daemons,
      workers === 0 ? "no external workers" : `external workers: ${workers}`,
    ),
  ];
  const all = [...findings.map((one) => ({ ...one, title: one.name })), ...serverChecks];
  const getRank = ({ severity, dismissed }: Check): number => (dismissed ? ORDER.length : ORDER.indexOf(severity));
  return all.toSorted((a, b) => getRank(a) - getRank(b));
};

/** The documentation page for each check. */
const DOCS: Readonly<Record<string, string>> = {
  "encryption key": "backup",
  backups: "backup",
  "home backups": "snapshots",
  certificate: "proxies",
  settings: "proxies",
  docker: "templates",
  "image registry": "repositories",
  terraform: "templates-terraform",
  hooks: "hooks",
  models: "chats",
};

export const getDocsPage = (name: string): string => DOCS[name] ?? "operating";
