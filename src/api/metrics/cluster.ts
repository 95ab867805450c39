// Metrics of a cluster node: its lease, the other nodes, and the standbys of its database.
import type { Metrics } from "#base/metrics.ts";
import type { BaseNode } from "#db/pg/base-node.ts";

export const registerCluster = (metrics: Metrics, node: BaseNode): void => {
  metrics.gauge(
    "slipway_node_active",
    "1 while this node is the active one and may serve; 0 of a spare.",
    () => [{ labels: { node: node.id }, value: node.serves_ms > 0 ? 1 : 0 }],
    ["node"],
  );
  metrics.gauge("slipway_node_epoch", "Number of times that the lease moved to another node.", () => node.epoch);
  metrics.gauge("slipway_node_serves_seconds", "Time until this node's lease expires.", () =>
    Math.max(0, node.serves_ms / 1000),
  );
  if (node.state.parts !== undefined) {
    metrics.gauge("slipway_node_parts", "Number of the 256 shards that this node owns.", () => node.state.parts ?? 0);
  }
  metrics.gauge(
    "slipway_node_silent_seconds",
    "Time since the last heartbeat of each node.",
    () => (node.view?.nodes ?? []).map(({ id, silent_ms }) => ({ labels: { node: id }, value: silent_ms / 1000 })),
    ["node"],
  );
  metrics.gauge("slipway_database_answers", "1 while the database answers this node.", () =>
    node.state.database === "answers" ? 1 : 0,
  );
  metrics.gauge("slipway_database_standby_required", "1 where commits wait for a standby of the database.", () =>
    node.view?.standby.required ? 1 : 0,
  );
  metrics.gauge(
    "slipway_database_standbys",
    "Synchronous standbys of the database that are connected; -1 where its user may not see them.",
    () => node.view?.standby.synchronous ?? -1,
  );
};
