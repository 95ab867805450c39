// Wire shape of the deployment's current load (facts/platform 9.1).
import { type Static, Type as t } from "@sinclair/typebox";
import { time } from "../fields.ts";
import { namedObject } from "../shape-names.ts";

const count = t.Integer();

export const DeploymentStats = namedObject("DeploymentStats", {
  aggregated_from: time(),
  collected_at: time(),
  next_update_at: time(),
  workspaces: t.Object({
    pending: count,
    building: count,
    running: count,
    failed: count,
    stopped: count,
    connection_latency_ms: t.Object(
      { P50: t.Number(), P95: t.Number() },
      { description: "The connection latency in milliseconds; -1 if there are no connections." },
    ),
    rx_bytes: count,
    tx_bytes: count,
  }),
  session_count: t.Object({ vscode: count, jetbrains: count, ssh: count, reconnecting_pty: count }),
});
export type DeploymentStats = Static<typeof DeploymentStats>;
