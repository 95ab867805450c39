// Metrics of a standby node: its process, and its view of the cluster. All other metrics come from the active node.
import type { Clock } from "#base/clock.ts";
import type { Address } from "#base/config/kinds.ts";
import { Metrics } from "#base/metrics.ts";
import { registerProcessMetrics } from "#base/process-figures.ts";
import type { BaseNode } from "#db/pg/base-node.ts";
import { registerCluster } from "./cluster.ts";
import { listenForScrapes } from "./listen.ts";

/**
 * Serves the metrics until disposed, which frees the address for the listener of the node once it is active. Throws `MetricsAddressError`.
 */
export const serveSpareMetrics = (
  node: BaseNode,
  clock: Clock,
  listenAddress: Address,
  hostNames: readonly string[],
): AsyncDisposable & { readonly url: URL } => {
  const metrics = new Metrics(clock);
  registerProcessMetrics(metrics);
  registerCluster(metrics, node);
  const { url, stop } = listenForScrapes(metrics, listenAddress, hostNames);
  return { url, [Symbol.asyncDispose]: stop };
};
