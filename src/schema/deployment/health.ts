// Wire shapes of the deployment's health: findings of `slipway doctor` and the server.
import { type Static, Type as t } from "@sinclair/typebox";
import { oneOf } from "../one-of.ts";
import { named, namedObject } from "../shape-names.ts";

export const SEVERITIES = ["ok", "warning", "error"] as const;
export type Severity = (typeof SEVERITIES)[number];

const severity = named("HealthSeverity", oneOf(SEVERITIES, "How bad it is."));
const section = {
  healthy: t.Boolean(),
  severity,
  warnings: t.Array(namedObject("HealthWarning", { code: t.String(), message: t.String() })),
  dismissed: t.Boolean({ description: "An administrator has dismissed it." }),
  error: t.Optional(t.String({ description: "What went wrong." })),
};

export const HealthFinding = namedObject("HealthFinding", {
  name: t.String({ description: "What was checked." }),
  severity,
  detail: t.String({ description: "What was found." }),
  dismissed: t.Boolean(),
});
export type HealthFinding = Static<typeof HealthFinding>;

export const HealthReport = namedObject("HealthReport", {
  time: t.String({ format: "date-time", description: "When it was checked." }),
  healthy: t.Boolean({ description: "There are no errors, except dismissed ones." }),
  severity,
  coder_version: t.String({ description: "The version of this server." }),
  findings: t.Array(HealthFinding, { description: "As `slipway doctor` words them." }),
  access_url: t.Object({
    ...section,
    access_url: t.String(),
    reachable: t.Boolean({ description: "The server can reach itself at this address." }),
    status_code: t.Integer(),
    healthz_response: t.String(),
  }),
  database: t.Object({
    ...section,
    reachable: t.Boolean(),
    latency: t.String({ description: "Median of five reads." }),
    latency_ms: t.Number(),
    threshold_ms: t.Integer({ description: "Higher values are a warning." }),
  }),
  derp: t.Object({
    ...section,
    clients: t.Integer({ description: "Connections to the relay." }),
    peers: t.Integer({ description: "Peers at the coordinator." }),
    tunnels: t.Integer(),
  }),
  websocket: t.Object({
    ...section,
    code: t.Integer({ description: "101 when a WebSocket opens at the access URL." }),
  }),
  provisioner_daemons: t.Object({
    ...section,
    items: t.Array(t.Object({ name: t.String(), running: t.Integer({ description: "Jobs it works on." }) })),
  }),
});
export type HealthReport = Static<typeof HealthReport>;

export const HealthSettings = namedObject("HealthSettings", {
  dismissed_healthchecks: t.Array(t.String({ maxLength: 64 }), {
    maxItems: 50,
    description: "Names of sections (AccessURL, Database, DERP, Websocket, ProvisionerDaemons) and of findings.",
  }),
});
export type HealthSettings = Static<typeof HealthSettings>;
