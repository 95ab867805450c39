// Workspace agents and the ways to them: their actors, streams and requests into workspaces, the private network.
import { AgentActor } from "#actors/agent/actor.ts";
import { Directory } from "#actors/runtime/directory.ts";
import { TunnelDialer } from "#domain/agents/dialer.ts";
import { Network } from "#domain/tailnet/network.ts";
import { AgentHttp } from "#src/wire/agent-http.ts";
import type { Base } from "./base.ts";

type Parts = Pick<Base, "config" | "clock" | "store" | "topics" | "copy">;

export const openAgents = ({ config, clock, store, topics, copy }: Parts) => {
  const dialer = new TunnelDialer({ store, clock });
  const deps = { store, clock, topics, log_limit: config.agent_log_limit };
  return {
    dialer,
    agentHttp: new AgentHttp(dialer, clock),
    tailnet: new Network({ store, clock, topics }),
    agents: new Directory((id) => new AgentActor(id, deps), clock, { copy }),
  };
};
