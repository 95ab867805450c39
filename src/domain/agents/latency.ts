// Computes the latency between an agent and the relays (facts/platform 2.5). Agents report it in their node of the private network.
// Slipway's own daemon reaches everything through this server's relay, so its latency is the connection's round-trip time.
import type { Latency } from "#db/schema/agents.ts";
import { getRegionName, RELAY_REGION } from "#src/tailnet/index.ts";
import type { Node } from "#src/wire/gen/tailnet_pb.ts";

const REGIONS = 32;

/** Returns the latency an agent has reported; undefined if it has measured none, like Slipway's own daemon. */
export const toNodeLatency = ({
  derpLatency,
  preferredDerp,
}: Pick<Node, "derpLatency" | "preferredDerp">): Latency | undefined => {
  const found: Latency = {};
  // Keys are a region and the address family, such as `999-v4`; the lower latency is used.
  for (const [key, seconds] of Object.entries(derpLatency).slice(0, REGIONS)) {
    const region = Number.parseInt(key, 10);
    if (!(region > 0) || !Number.isFinite(seconds) || seconds < 0) continue;
    const name = getRegionName(region);
    const latency_ms = Math.min(found[name]?.latency_ms ?? Number.POSITIVE_INFINITY, seconds * 1000);
    found[name] = { latency_ms, preferred: preferredDerp === region };
  }
  return Object.keys(found).length === 0 ? undefined : found;
};

/** Returns the latency of one of Slipway's daemons from its connection's round-trip time. */
export const toDaemonLatency = (latency_ms: number): Latency => ({
  [getRegionName(RELAY_REGION)]: { latency_ms, preferred: true },
});
