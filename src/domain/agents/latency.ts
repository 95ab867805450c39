// How far an agent is from the relays (facts/platform 2.5): what it says in its node of the private network. A daemon of ours reaches
// everything through this server, whose relay is its home: the way to it is what the connection takes there and back.
import type { Latency } from "#db/schema/agents.ts";
import { RELAY_REGION, regionName } from "#src/tailnet/index.ts";
import type { Node } from "#src/wire/gen/tailnet_pb.ts";

const REGIONS = 32;

/** What the agent says of the relays; undefined when it has measured none, as daemons of ours. */
export const latencyOfNode = ({
  derpLatency,
  preferredDerp,
}: Pick<Node, "derpLatency" | "preferredDerp">): Latency | undefined => {
  const found: Latency = {};
  // Keys are a region and the kind of address it was measured over, such as `999-v4`; the quicker counts.
  for (const [key, seconds] of Object.entries(derpLatency).slice(0, REGIONS)) {
    const region = Number.parseInt(key, 10);
    if (!(region > 0) || !Number.isFinite(seconds) || seconds < 0) continue;
    const name = regionName(region);
    const latency_ms = Math.min(found[name]?.latency_ms ?? Number.POSITIVE_INFINITY, seconds * 1000);
    found[name] = { latency_ms, preferred: preferredDerp === region };
  }
  return Object.keys(found).length === 0 ? undefined : found;
};

/** Of a daemon of ours, by the round trip of its connection. */
export const latencyOfDaemon = (latency_ms: number): Latency => ({
  [regionName(RELAY_REGION)]: { latency_ms, preferred: true },
});
