// `GET {agent}/coordinate`: a client of one agent's network (facts/wire 2.1). Callers without access to the workspace get 404 before any
// other check; the connection ends when access is lost (rule SH-6).
import { t } from "elysia";
import { canUseWorkspace } from "#domain/access.ts";
import { loadUsableAgent } from "#domain/agents/find.ts";
import { makeWorkspaceAccess } from "#domain/live-access.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, Upgraded } from "../http/responses.ts";
import { closeWhenAccessLost } from "../http/revocation.ts";
import { routes } from "../http/routes.ts";
import { ClientConnection } from "./client-connection.ts";
import { checkVersion, clientQuery, parseAgentVersion, resolvePeerId } from "./client-peer.ts";
import { WatchedTunnels } from "./watched-tunnels.ts";

export const agentCoordinate = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/:workspaceagent/coordinate",
      async ({ caller, params, query, request }) => {
        const { agent_id, workspace_id } = await loadUsableAgent(ctx.store, params.workspaceagent, caller);
        checkVersion(parseAgentVersion(query.version));
        const holder = `agent:${agent_id}:${caller.user_id}`;
        const tunnels = new WatchedTunnels(ctx, caller, agent_id);
        const connection = new ClientConnection(
          ctx,
          {
            peer: tunnels.makePeerOptions(resolvePeerId(ctx, holder, query.resume_token), request),
            holder,
            onJoined: (peer) => tunnels.setPeer(peer),
          },
          () => tunnels.stop(),
        );
        const guardedSocket = closeWhenAccessLost(
          ctx,
          caller,
          makeWorkspaceAccess(ctx, workspace_id, canUseWorkspace),
          connection,
        );
        return ctx.sockets.upgrade(request, guardedSocket, { who: caller.user_id });
      },
      {
        user: true,
        params: t.Object({ workspaceagent: t.String({ format: "uuid", description: "The ID of the agent." }) }),
        query: clientQuery("2.0"),
        response: { 101: Upgraded, ...fails(400, 401, 404, 503) },
        detail: operation({
          tags: ["Agents"],
          operationId: "coordinateAgent",
          summary: "Join the network of an agent",
          description:
            "A WebSocket of binary messages that carry yamux streams with DRPC and protobuf: the Tailnet service, for tunnels to this agent only. Closes with 1008 when the caller's access ends.",
          access: "owner",
          scope: "workspace:ssh",
          placement: "agent",
        }),
      },
    );
