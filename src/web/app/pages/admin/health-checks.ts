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

const SEVERITY_ORDER: readonly HealthReport["severity"][] = ["error", "warning", "ok"];

type ReportSection = {
  severity: Check["severity"];
  dismissed: boolean;
  error?: string;
  warnings: { message: string }[];
};

const toCheck = (name: string, title: string, section: ReportSection, okText: string): Check => ({
  name,
  title,
  severity: section.severity,
  dismissed: section.dismissed,
  detail: section.error ?? section.warnings[0]?.message ?? okText,
});

export const toChecks = (report: HealthReport): Check[] => {
  const { access_url, database, websocket, derp, provisioner_daemons, findings } = report;
  const workerCount = provisioner_daemons.items.length;
  const serverChecks = [
    toCheck("AccessURL", "access URL", access_url, `${access_url.access_url} answers`),
    toCheck("Database", "database", database, `a query takes ${database.latency_ms.toFixed(1)} ms`),
    toCheck("Websocket", "WebSockets", websocket, "WebSockets connect at the access URL"),
    toCheck("DERP", "network relay", derp, derp.clients === 1 ? "1 connection" : `${derp.clients} connections`),
    toCheck(
      "ProvisionerDaemons",
      "workers",
      provisioner_daemons,
      workerCount === 0 ? "no external workers" : `external workers: ${workerCount}`,
    ),
  ];
  const checks = [...findings.map((one) => ({ ...one, title: one.name })), ...serverChecks];
  const getRank = ({ severity, dismissed }: Check): number =>
    dismissed ? SEVERITY_ORDER.length : SEVERITY_ORDER.indexOf(severity);
  return checks.toSorted((a, b) => getRank(a) - getRank(b));
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
