// Streams the metadata of one agent as server-sent events or over a WebSocket (facts/platform 5.8).
import { t } from "elysia";
import { canSeeWorkspace } from "#domain/access.ts";
import { loadAgent } from "#domain/agents/find.ts";
import { makeWorkspaceAccess } from "#domain/live-access.ts";
import { AgentMetadata, MetadataFrame } from "#schema/agents/agent.ts";
import type { ApiContext } from "../context.ts";
import { callers, type UserCaller } from "../http/caller.ts";
import { eventStream } from "../http/event-stream.ts";
import { operation } from "../http/operation.ts";
import { fails, Upgraded } from "../http/responses.ts";
import { closeWhenAccessLost, watchAccess } from "../http/revocation.ts";
import { routes } from "../http/routes.ts";
import { CLOSE, type Socket, type SocketHandler } from "../http/socket.ts";
import { MetadataWatchers } from "./metadata-watchers.ts";

const tags = ["Agents"];
const params = t.Object({ workspaceagent: t.String({ format: "uuid", description: "The ID of the agent." }) });
const UNREADABLE = JSON.stringify({ message: "The metadata cannot be read now." });

export const agentMetadata = (ctx: ApiContext) => {
  const watchers = new MetadataWatchers(ctx);
  const findWatchable = async (id: string, caller: UserCaller) => {
    const { agent_id, workspace_id } = await loadAgent(ctx.store, id, caller);
    return { agent_id, access: makeWorkspaceAccess(ctx, workspace_id, canSeeWorkspace) };
  };
  return routes()
    .use(callers)
    .get(
      "/:workspaceagent/watch-metadata",
      async ({ caller, params, request }) => {
        const { agent_id, access } = await findWatchable(params.workspaceagent, caller);
        return eventStream(ctx, request, (stream) => {
          const unwatchMetadata = watchers.watch(agent_id, {
            onData: (json) => stream.send("data", json),
            onError: () => stream.send("error", UNREADABLE),
            onReplaced: () => stream.end(),
          });
          const unwatchAccess = watchAccess(ctx, caller, access, () => stream.end());
          return () => {
            unwatchMetadata();
            unwatchAccess();
          };
        });
      },
      {
        user: true,
        params,
        response: { 200: t.Unknown({ description: "A stream of server-sent events." }), ...fails(400, 401, 404) },
        detail: operation({
          tags,
          operationId: "watchAgentMetadata",
          summary: "Watch an agent's metadata (server-sent events)",
          answers: ["text/event-stream"],
          description:
            "Sends the events `ping` (immediately and every 15 s) and `data`: a list of `{description, result}`, sent immediately, at most once a second after changes, and at least every 5 s. Ends when a newer build replaces the agent.",
          sends: t.Array(AgentMetadata),
          access: "owner",
          scope: "workspace:read",
          placement: "agent",
        }),
      },
    )
    .get(
      "/:workspaceagent/watch-metadata-ws",
      async ({ caller, params, request }) => {
        const { agent_id, access } = await findWatchable(params.workspaceagent, caller);
        const handler = new MetadataSocket(watchers, agent_id);
        const guardedSocket = closeWhenAccessLost(ctx, caller, access, handler);
        return ctx.sockets.upgrade(request, guardedSocket, { who: caller.user_id });
      },
      {
        user: true,
        params,
        response: { 200: Upgraded, ...fails(400, 401, 404, 503) },
        detail: operation({
          tags,
          operationId: "openAgentMetadataSocket",
          summary: "Watch an agent's metadata (WebSocket)",
          description:
            'A WebSocket of text messages `{"type", "data"}` with the types `data` and `error` and the same data as the event stream. There is no `ping` message, because WebSockets have their own pings and clients treat every message as a list. A message from the client closes the connection.',
          sends: MetadataFrame,
          access: "owner",
          scope: "workspace:read",
          placement: "agent",
        }),
      },
    );
};

class MetadataSocket implements SocketHandler {
  readonly #watchers: MetadataWatchers;
  readonly #agentId: string;
  #unsubscribe: (() => void) | undefined;

  constructor(watchers: MetadataWatchers, agent_id: string) {
    this.#watchers = watchers;
    this.#agentId = agent_id;
  }

  open(socket: Socket): void {
    this.#unsubscribe = this.#watchers.watch(this.#agentId, {
      onData: (json) => socket.send(`{"type":"data","data":${json}}`, true),
      onError: () => socket.send(`{"type":"error","data":${UNREADABLE}}`),
      onReplaced: () => socket.close(CLOSE.goingAway, "a newer build has taken over"),
    });
  }

  message(socket: Socket): void {
    socket.close(CLOSE.policy, "this stream takes no messages");
  }

  close(): void {
    this.#unsubscribe?.();
  }
}
