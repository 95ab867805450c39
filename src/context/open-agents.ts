// Workspace agents and the ways to them: their actors, streams and requests into workspaces, the private network.
import { AgentActor } from "#actors/agent/actor.ts";
import { Directory } from "#actors/runtime/directory.ts";
import { beginOutside, waitingForOthers } from "#base/network/request-part.ts";
import { AgentsDialer } from "#domain/agents/dialer.ts";
import { Network } from "#domain/tailnet/network.ts";
import { AgentHttp } from "#src/wire/index.ts";
import type { Base } from "./base.ts";
import { farDialer } from "./far-agents.ts";
import { joinRelays } from "./far-relay.ts";
import { joinCoordinators } from "./far-tunnels.ts";
import { shareNetwork } from "./far-views.ts";

/** Agents that rest and are kept in memory: reading one again takes a tenth of a millisecond, keeping it a kilobyte and more. */
const RESTING_AGENTS = 1_000;

type Parts = Pick<Base, "config" | "clock" | "store" | "topics" | "copy" | "far" | "elsewhere">;

export const openAgents = ({ config, clock, store, topics, copy, far, elsewhere }: Parts) => {
  const tailnet = new Network({ store, clock, topics });
  if (far) joinRelays(far, clock, tailnet.relay);
  if (far) joinCoordinators(far, clock, tailnet.coordinator);
  if (far) shareNetwork(far, clock, tailnet);
  const dialer = new AgentsDialer({ store, clock, topics, tailnet });
  const deps = { store, clock, topics, log_limit: config.agent_log_limit };
  return {
    dialer,
    agentHttp: new AgentHttp(far ? farDialer(far, dialer) : dialer, clock, {
      begin: beginOutside,
      wait: waitingForOthers,
    }),
    tailnet,
    agents: new Directory((id) => new AgentActor(id, deps), clock, {
      copy,
      elsewhere: elsewhere("agent"),
      most: RESTING_AGENTS,
    }),
  };
};
