// Builds the deployment's health report from the findings. Pure (rules DP-5, DP-6).
import { VERSION } from "#base/version.ts";
import type { HealthReport, Severity } from "#schema/deployment/health.ts";
import type { Finding } from "./finding.ts";

const SEVERITY = { ok: "ok", warn: "warning", wrong: "error" } as const satisfies Record<Finding["status"], Severity>;
const ORDER: readonly Severity[] = ["ok", "warning", "error"];

/** A read of one row above this many milliseconds is a warning. */
export const DATABASE_THRESHOLD_MS = 15;

/** Measurements in the units of the report. */
export type Measurements = {
  readonly at: string;
  readonly findings: readonly Finding[];
  readonly access: { readonly url: string; readonly status: number; readonly text: string; readonly error?: string };
  readonly database: { readonly ms: number; readonly error?: string };
  readonly socket: { readonly error?: string };
  readonly relay: { readonly clients: number; readonly peers: number; readonly tunnels: number };
  readonly workers: readonly { readonly name: string; readonly running: number }[];
};

export const makeReport = (measurements: Measurements, dismissed: ReadonlySet<string>): HealthReport => {
  const { access, database, socket, relay, workers } = measurements;
  const findings = measurements.findings.map(({ name, status, detail }) => ({
    name,
    severity: SEVERITY[status],
    detail,
    dismissed: dismissed.has(name),
  }));
  const sections = {
    access_url: {
      ...makeSection(dismissed.has("AccessURL"), access.error),
      access_url: access.url,
      reachable: access.error === undefined,
      status_code: access.status,
      healthz_response: access.text,
    },
    database: {
      ...makeSection(dismissed.has("Database"), database.error, warnIfSlow(database.ms)),
      reachable: database.error === undefined,
      threshold_ms: DATABASE_THRESHOLD_MS,
      latency: `${database.ms.toFixed(3)}ms`,
      latency_ms: database.ms,
    },
    derp: { ...makeSection(dismissed.has("DERP"), socket.error), ...relay },
    websocket: { ...makeSection(dismissed.has("Websocket"), socket.error), code: socket.error === undefined ? 101 : 0 },
    provisioner_daemons: { ...makeSection(dismissed.has("ProvisionerDaemons"), undefined), items: [...workers] },
  };
  const counted = [...findings, ...Object.values(sections)].filter((one) => !one.dismissed);
  const worst = Math.max(0, ...counted.map((one) => ORDER.indexOf(one.severity)));
  const severity = ORDER[worst] ?? "ok";
  return {
    time: measurements.at,
    healthy: severity !== "error",
    severity,
    coder_version: VERSION,
    findings,
    ...sections,
  };
};

type Warning = { readonly code: string; readonly message: string };

const makeSection = (dismissed: boolean, error: string | undefined, warnings: Warning[] = []) => ({
  healthy: error === undefined,
  dismissed,
  warnings,
  severity: (error !== undefined ? "error" : warnings.length > 0 ? "warning" : "ok") as Severity,
  ...(error === undefined ? {} : { error }),
});

const warnIfSlow = (ms: number): Warning[] =>
  ms <= DATABASE_THRESHOLD_MS
    ? []
    : [
        {
          code: "EDB02",
          message: `A read of one row takes ${ms.toFixed(0)} ms; more than ${DATABASE_THRESHOLD_MS} is slow.`,
        },
      ];
