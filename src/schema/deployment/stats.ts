// Wire shape of the deployment's current load (facts/platform 9.1).
import { type Static, Type as t } from "@sinclair/typebox";
import { time } from "../fields.ts";
import { namedObject } from "../shape-names.ts";

const count = (description: string) => t.Integer({ description });
const sessions = (client: string) => count(`The number of open connections of ${client}.`);

export const DeploymentStats = namedObject("DeploymentStats", {
  aggregated_from: time("Reports of agents before this time are not included."),
  collected_at: time("When the statistics were computed."),
  next_update_at: time("When clients should request the statistics again."),
  workspaces: t.Object({
    pending: count("The number of workspaces whose build waits for a worker."),
    building: count("The number of workspaces whose build is running or being canceled."),
    running: count("The number of running workspaces."),
    failed: count("The number of workspaces whose latest build failed."),
    stopped: count("The number of workspaces that are stopped or whose latest build was canceled."),
    connection_latency_ms: t.Object(
      {
        P50: t.Number({ description: "The median of all agents with connections." }),
        P95: t.Number({ description: "The 95th percentile of all agents with connections." }),
      },
      { description: "The connection latency in milliseconds; -1 if there are no connections." },
    ),
    rx_bytes: count("The number of bytes that agents received, by their latest reports."),
    tx_bytes: count("The number of bytes that agents sent, by their latest reports."),
  }),
  session_count: t.Object({
    vscode: sessions("Visual Studio Code"),
    jetbrains: sessions("JetBrains IDEs"),
    ssh: sessions("SSH clients"),
    reconnecting_pty: sessions("web terminals"),
  }),
});
export type DeploymentStats = Static<typeof DeploymentStats>;
