// `GET {agent}/pty`: a terminal in the workspace (facts/platform 5.6).
import { t } from "elysia";
import { invalidField } from "#base/errors.ts";
import { canUseWorkspace } from "#domain/access.ts";
import { loadUsableAgent } from "#domain/agents/find.ts";
import { trackUse } from "#domain/agents/use.ts";
import type { End } from "#domain/connections/log.ts";
import { makeWorkspaceAccess } from "#domain/live-access.ts";
import { toActivityUser } from "#domain/workspaces/find.ts";
import { MAX_SIDE, type TerminalRequest } from "#src/wire/index.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { toConnectedBy } from "../http/connected-by.ts";
import { operation } from "../http/operation.ts";
import { fails, Upgraded } from "../http/responses.ts";
import { closeWhenAccessLost } from "../http/revocation.ts";
import { routes } from "../http/routes.ts";
import { TerminalBridge } from "./terminal-bridge.ts";

// The schema has no bounds, because Elysia would report violations without the parameter's name.
const SideQuery = t.Optional(t.Integer({ description: `The initial size, 1 to ${MAX_SIDE}; default 80.` }));

const parseSide = (name: "height" | "width", side = 80): number => {
  if (side < 1 || side > MAX_SIDE) throw invalidField(name, `must be from 1 to ${MAX_SIDE}`);
  return side;
};

const parseBackend = (name = "buffered", container: string): string => {
  if (name !== "buffered" && name !== "screen") throw invalidField("backend_type", "must be buffered or screen");
  if (name === "screen" && container !== "") throw invalidField("backend_type", "must be buffered in a container");
  return name;
};

export const agentTerminal = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/:workspaceagent/pty",
      async ({ caller, params, query, request }) => {
        const { agent_id, workspace_id } = await loadUsableAgent(ctx.store, params.workspaceagent, caller);
        const { reconnect, command = "", container = "", container_user = "" } = query;
        const terminal: TerminalRequest = {
          ID: reconnect.toLowerCase(),
          Height: parseSide("height", query.height),
          Width: parseSide("width", query.width),
          Command: command,
          Container: container,
          ContainerUser: container_user,
          BackendType: parseBackend(query.backend_type, container),
        };
        const onActivity = trackUse(ctx, workspace_id, { reason: "terminal", agent_id, by: toActivityUser(caller) });
        // Captured now, because the request's details are not available after the upgrade.
        const connectedBy = toConnectedBy(ctx, caller, request);
        const onOpened = (): End => ctx.connections.begin({ ...connectedBy, agent_id, type: "reconnecting_pty" });
        const bridge = new TerminalBridge(ctx, agent_id, terminal, {
          user_id: caller.user_id,
          onActivity,
          onOpened,
        });
        const access = makeWorkspaceAccess(ctx, workspace_id, canUseWorkspace);
        const guardedSocket = closeWhenAccessLost(ctx, caller, access, bridge);
        return ctx.sockets.upgrade(request, guardedSocket, { who: caller.user_id });
      },
      {
        user: true,
        params: t.Object({ workspaceagent: t.String({ format: "uuid", description: "The ID of the agent." }) }),
        query: t.Object({
          signed_token: t.Optional(
            t.String({
              description: "A ticket from `POST /applications/reconnecting-pty-signed-token`. Use instead of a key.",
            }),
          ),
          reconnect: t.String({
            format: "uuid",
            description:
              "The ID of the terminal. Reusing an ID attaches to the running terminal and shows its current screen, with up to 1,000 lines of scrollback.",
          }),
          height: SideQuery,
          width: SideQuery,
          command: t.Optional(
            t.String({
              maxLength: 4096,
              description: "The command to run in the user's shell; default: a login shell.",
            }),
          ),
          container: t.Optional(
            t.String({ maxLength: 256, description: "The name or ID of the container in the workspace to run in." }),
          ),
          container_user: t.Optional(
            t.String({ maxLength: 256, description: "The user in the container; default: the container's user." }),
          ),
          backend_type: t.Optional(
            t.String({
              maxLength: 64,
              description:
                "What keeps a new terminal alive. `buffered` (default): the agent. `screen`: GNU screen in the workspace, whose terminals survive if the agent is killed; reconnect with the same ID and `screen`. If GNU screen is not installed, the terminal prints an error and closes.",
            }),
          ),
        }),
        response: { 101: Upgraded, ...fails(400, 401, 404, 409, 503) },
        detail: operation({
          tags: ["Agents"],
          operationId: "openTerminal",
          summary: "Open a terminal",
          description:
            "A WebSocket. Messages from the client are JSON objects `{data, height, width}` of at most 1 MiB, in which every field is optional. If the program doesn't read its input, the client's messages wait. The program has the smallest height and width of all clients. Output is sent as binary messages of raw bytes. Closes with 1000 when the command ends, 1011 and the reason when the agent is unreachable or disconnects, and 1013 when the reader reads nothing for 20 s while others watch the same terminal (120 s alone): reconnect with the same ID. A detached terminal is kept for five minutes.",
          access: "owner",
          scope: "workspace:ssh",
          placement: "agent",
        }),
      },
    );
