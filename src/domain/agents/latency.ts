// How far agents are from the relays (facts/platform 2.5): what is in the node each has given the coordinator. A daemon of ours reaches
// everything through this server, whose relay is its home: the way to it is what the connection takes there and back.
import type { WorkspaceAgent } from "#schema/agents/agent.ts";
import { RELAY_REGION, regionName } from "#src/tailnet/derp-map.ts";
import type { DomainContext } from "../context.ts";

/** By region name, in milliseconds; `preferred` is the agent's home. */
export type LatencyOf = (agent_id: string) => WorkspaceAgent["latency"];

const NONE: WorkspaceAgent["latency"] = {};
const REGIONS = 32;

export const latencyOf =
  ({ tailnet, dialer }: Pick<DomainContext, "tailnet" | "dialer">): LatencyOf =>
  (agent_id) => {
    const node = tailnet.coordinator.nodeOf(agent_id);
    const latency_ms = dialer.roundTrip(agent_id);
    // A daemon of ours is a peer, too, and measures no way of its own to the relay.
    if (!node || Object.keys(node.derpLatency).length === 0)
      return latency_ms === undefined ? NONE : { [regionName(RELAY_REGION)]: { latency_ms, preferred: true } };
    const found: WorkspaceAgent["latency"] = {};
    // Keys are a region and the kind of address it was measured over, such as `999-v4`; the quicker counts.
    for (const [key, seconds] of Object.entries(node.derpLatency).slice(0, REGIONS)) {
      const region = Number.parseInt(key, 10);
      if (!(region > 0) || !Number.isFinite(seconds) || seconds < 0) continue;
      const name = regionName(region);
      const latency_ms = Math.min(found[name]?.latency_ms ?? Number.POSITIVE_INFINITY, seconds * 1000);
      found[name] = { latency_ms, preferred: node.preferredDerp === region };
    }
    return found;
  };
