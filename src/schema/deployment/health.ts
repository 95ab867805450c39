// Wire shapes of the deployment's health: findings of `slipway doctor` and the server.
import { type Static, Type as t } from "@sinclair/typebox";
import { oneOf } from "../one-of.ts";
import { named, namedObject } from "../shape-names.ts";

export const SEVERITIES = ["ok", "warning", "error"] as const;
export type Severity = (typeof SEVERITIES)[number];

const severity = named("HealthSeverity", oneOf(SEVERITIES, "The severity of the finding."));
const section = {
  healthy: t.Boolean({ description: "Whether the section has no error. Warnings don't count." }),
  severity,
  warnings: t.Array(
    namedObject("HealthWarning", {
      code: t.String({ description: "A stable code of the warning, such as `EDB02`." }),
      message: t.String({ description: "The warning, as a sentence." }),
    }),
    { description: "Problems that are not errors." },
  ),
  dismissed: t.Boolean({ description: "Whether an administrator has dismissed the finding." }),
  error: t.Optional(t.String({ description: "A description of the error." })),
};

export const HealthFinding = namedObject("HealthFinding", {
  name: t.String({ description: "The name of the check." }),
  severity,
  detail: t.String({ description: "The result of the check." }),
  dismissed: section.dismissed,
});
export type HealthFinding = Static<typeof HealthFinding>;

export const HealthReport = namedObject("HealthReport", {
  time: t.String({ format: "date-time", description: "When the checks ran." }),
  healthy: t.Boolean({ description: "Whether there are no errors other than dismissed ones." }),
  severity: { ...severity, description: "The worst severity of all findings and sections, without dismissed ones." },
  coder_version: t.String({ description: "The version of this server." }),
  findings: t.Array(HealthFinding, { description: "The findings, worded as in `slipway doctor`." }),
  access_url: t.Object({
    ...section,
    access_url: t.String({ description: "The URL at which users and workspaces reach the server." }),
    reachable: t.Boolean({ description: "Whether the server can reach itself at the access URL." }),
    status_code: t.Integer({ description: "The status of `/healthz` at the access URL; 0 without a response." }),
    healthz_response: t.String({ description: "The beginning of the response of `/healthz`." }),
  }),
  database: t.Object({
    ...section,
    reachable: t.Boolean({ description: "Whether the database responds." }),
    latency: t.String({ description: "The median latency of five reads." }),
    latency_ms: t.Number({ description: "The median latency of five reads, in milliseconds." }),
    threshold_ms: t.Integer({ description: "The latency above which there is a warning, in milliseconds." }),
  }),
  derp: t.Object({
    ...section,
    clients: t.Integer({ description: "The number of connections to the relay." }),
    peers: t.Integer({ description: "The number of peers at the coordinator." }),
    tunnels: t.Integer({ description: "The number of connections between peers at the coordinator." }),
  }),
  websocket: t.Object({
    ...section,
    code: t.Integer({ description: "The status code; 101 if a WebSocket opens at the access URL." }),
  }),
  provisioner_daemons: t.Object({
    ...section,
    items: t.Array(
      t.Object({
        name: t.String({ description: "The name of the worker." }),
        running: t.Integer({ description: "The number of jobs that the worker is running." }),
      }),
      { description: "The connected workers." },
    ),
  }),
});
export type HealthReport = Static<typeof HealthReport>;

export const HealthSettings = namedObject("HealthSettings", {
  dismissed_healthchecks: t.Array(t.String({ maxLength: 64 }), {
    maxItems: 50,
    description:
      "The names of dismissed sections (AccessURL, Database, DERP, Websocket, ProvisionerDaemons) and findings.",
  }),
});
export type HealthSettings = Static<typeof HealthSettings>;
