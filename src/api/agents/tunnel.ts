// `GET me/tunnel`: the connection through which the server reaches into the workspace. A Slipway extension to the agent protocol that
// upstream agents never use.
import { Throttle } from "#domain/users/throttle.ts";
import { readDaemonId } from "#schema/agents/daemon-id.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { toAgentsOwner } from "../http/holders.ts";
import { operation } from "../http/operation.ts";
import { fails, Upgraded } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { TunnelConnection } from "./tunnel-connection.ts";

/** An agent opens one, and another each time it reconnects. Each new one replaces the previous one. */
const MAX_TUNNELS_PER_MINUTE = 60;

export const agentTunnel = (ctx: ApiContext) => {
  const throttle = new Throttle(ctx.clock, MAX_TUNNELS_PER_MINUTE);
  return routes()
    .use(callers)
    .get(
      "/me/tunnel",
      ({ caller, request }) => {
        const { agent_id } = caller;
        throttle.count(agent_id);
        ctx.dialer.admit(agent_id, readDaemonId(request.headers));
        const limits = { who: agent_id, owner: toAgentsOwner(caller) };
        return ctx.sockets.upgrade(request, new TunnelConnection(ctx, caller), limits);
      },
      {
        agent: true,
        response: { 101: Upgraded, ...fails(400, 401, 409, 429, 503) },
        detail: operation({
          tags: ["Agents"],
          operationId: "connectAgentTunnel",
          access: "agent",
          summary: "Connect an agent's tunnel",
          description:
            "A WebSocket of binary messages that carry yamux streams, which the server opens (it is the yamux client) to reach the agent's HTTP API (port 4), its terminals (port 2) and TCP ports of the workspace (9 and above). Each stream begins with a version byte (1) and the port as two bytes, big endian. The agent responds with an outcome byte (0 open, 1 refused, 2 failed) and a reason with a two-byte length; after that, the stream carries the target's bytes. A new tunnel of the same agent replaces the previous one. A newer build closes it with 1001. An agent can open at most 60 tunnels a minute.",
          placement: "token",
        }),
      },
    );
};
