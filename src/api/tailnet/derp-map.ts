// The relay map as JSON: `GET /derp-map` over a WebSocket, and `connection` for clients about to connect to an agent (facts/wire 2.5).
import { t } from "elysia";
import { loadAgent } from "#domain/agents/find.ts";
import { AgentConnectionInfo, DerpMap } from "#schema/agents/derp-map.ts";
import { buildDerpMapJson, RELAY_ONLY } from "#src/tailnet/index.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, Upgraded } from "../http/responses.ts";
import { closeWhenKeyRevoked } from "../http/revocation.ts";
import { routes } from "../http/routes.ts";
import { CLOSE, type SocketHandler } from "../http/socket.ts";

/** Suffix of workspace hostnames, the same for all clients and equal to upstream's default (facts/platform 5.7). */
export const HOSTNAME_SUFFIX = "coder";

const tags = ["Agents"];

const getConnectionInfo = (ctx: ApiContext): AgentConnectionInfo => ({
  derp_map: buildDerpMapJson(ctx.accessUrl),
  ...RELAY_ONLY,
  hostname_suffix: HOSTNAME_SUFFIX,
});

/** `GET /workspaceagents/connection`, and the same for one agent. */
export const agentConnection = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get("/connection", () => getConnectionInfo(ctx), {
      user: true,
      response: { 200: AgentConnectionInfo, ...fails(401) },
      detail: operation({
        tags,
        operationId: "getConnectionInfo",
        summary: "Get connection information",
        access: "users",
        scope: "any",
      }),
    })
    .get(
      "/:workspaceagent/connection",
      async ({ caller, params }) => {
        await loadAgent(ctx.store, params.workspaceagent, caller);
        return getConnectionInfo(ctx);
      },
      {
        user: true,
        params: t.Object({ workspaceagent: t.String({ format: "uuid", description: "The ID of the agent." }) }),
        response: { 200: AgentConnectionInfo, ...fails(400, 401, 404) },
        detail: operation({
          tags,
          operationId: "getAgentConnectionInfo",
          summary: "Get an agent's connection information",
          description: "Returns the same information for every agent.",
          access: "owner",
          scope: "workspace:read",
          placement: "agent",
        }),
      },
    );

/** `GET /derp-map`. */
export const derpMaps = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/derp-map",
      ({ caller, request }) =>
        ctx.sockets.upgrade(request, closeWhenKeyRevoked(ctx, caller, makeMapHandler(ctx)), { who: caller.user_id }),
      {
        user: true,
        response: { 101: Upgraded, ...fails(400, 401, 503) },
        detail: operation({
          tags,
          operationId: "watchRelayMap",
          summary: "Watch the relay map",
          description:
            "A WebSocket. Each binary message is the complete map as JSON, sent immediately and after each change. Clients must not send messages; the server closes those connections with 1002.",
          sends: DerpMap,
          access: "users",
          scope: "any",
        }),
      },
    );

const makeMapHandler = (ctx: ApiContext): SocketHandler => ({
  open: (socket) => void socket.send(new TextEncoder().encode(JSON.stringify(buildDerpMapJson(ctx.accessUrl)))),
  message: (socket) => socket.close(CLOSE.protocol, "clients must not send messages"),
});
