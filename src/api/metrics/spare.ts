// The figures of a spare: of its process, and of what it sees of the cluster. All others are those of the active node.
import type { Clock } from "#base/clock.ts";
import type { Address } from "#base/config/kinds.ts";
import { Metrics } from "#base/metrics.ts";
import { presentProcess } from "#base/process-figures.ts";
import type { LivingNode } from "#db/pg/living-node.ts";
import { registerCluster } from "./cluster.ts";
import { listenForScrapes } from "./listen.ts";

/** Shows them until disposed: then the address is free for the node's own listener, once it is active. Throws `MetricsAddressError`. */
export const showSpare = (
  node: LivingNode,
  clock: Clock,
  at: Address,
  names: readonly string[],
): AsyncDisposable & { readonly url: URL } => {
  const metrics = new Metrics(clock);
  presentProcess(metrics);
  registerCluster(metrics, node);
  const { url, stop } = listenForScrapes(metrics, at, names);
  return { url, [Symbol.asyncDispose]: stop };
};
