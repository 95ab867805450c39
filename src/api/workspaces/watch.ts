// Watches one workspace, as server-sent events or over a WebSocket (facts/platform 5.1 and 5.2).
import { t } from "elysia";
import { canSeeWorkspace } from "#domain/access.ts";
import { makeWorkspaceAccess } from "#domain/live-access.ts";
import { loadWorkspace, workspaceGone } from "#domain/workspaces/find.ts";
import { Workspace } from "#schema/workspaces/workspace.ts";
import { WorkspaceFrame } from "#schema/workspaces/workspace-watch.ts";
import type { ApiContext } from "../context.ts";
import { callers, type UserCaller } from "../http/caller.ts";
import { eventStream } from "../http/event-stream.ts";
import { operation } from "../http/operation.ts";
import { fails, Upgraded } from "../http/responses.ts";
import { watchAccess } from "../http/revocation.ts";
import { routes } from "../http/routes.ts";
import { CLOSE, type Socket, type SocketHandler } from "../http/socket.ts";
import { Heartbeat } from "./heartbeat.ts";
import { Watchers } from "./watchers.ts";

const tags = ["Workspaces"];
const path = t.Object({ workspace: t.String({ format: "uuid", description: "The ID of the workspace." }) });
const UNREADABLE = JSON.stringify({ message: "The workspace cannot be read now." });
/** Shorter messages are not compressed, because that would cost more than it saves. */
const MIN_COMPRESSED_CHARS = 16_384;
const PING = JSON.stringify({ type: "ping", data: null });

export const watch = (ctx: ApiContext) => {
  const watchers = new Watchers(ctx);
  const heartbeat = new Heartbeat(ctx.clock);
  const findWatchableId = async (id: string, caller: UserCaller): Promise<string> => {
    const workspace = await loadWorkspace(ctx, id, caller);
    if (workspace.deleted) throw workspaceGone();
    return workspace.id;
  };
  return routes()
    .use(callers)
    .get(
      "/:workspace/watch",
      async ({ caller, params, request }) => {
        const id = await findWatchableId(params.workspace, caller);
        return eventStream(ctx, request, (stream) => {
          const unwatchWorkspace = watchers.watch(id, {
            viewer: caller,
            onData: (json) => stream.send("data", json),
            onError: () => stream.send("error", UNREADABLE),
          });
          const access = makeWorkspaceAccess(ctx, id, canSeeWorkspace);
          const unwatchAccess = watchAccess(ctx, caller, access, () => stream.end());
          return () => {
            unwatchWorkspace();
            unwatchAccess();
          };
        });
      },
      {
        user: true,
        params: path,
        response: { 200: t.Unknown({ description: "A stream of server-sent events." }), ...fails(400, 401, 404, 410) },
        detail: operation({
          tags,
          operationId: "watchWorkspace",
          summary: "Watch a workspace (server-sent events)",
          answers: ["text/event-stream"],
          description:
            "Sends the events `ping` (immediately and every 15 s) and `data`: the whole workspace, immediately and after each change to it, its builds, agents, template, names or queue position. Last use, heartbeats and agent metadata are sent with the next change. Prefer watch-ws, because browsers allow only a few connections of this kind.",
          sends: Workspace,
          access: "owner",
          scope: "workspace:read",
          placement: "workspace",
        }),
      },
    )
    .get(
      "/:workspace/watch-ws",
      async ({ caller, params, request }) => {
        const id = await findWatchableId(params.workspace, caller);
        return ctx.sockets.upgrade(request, new WorkspaceSocket(ctx, { watchers, heartbeat }, id, caller), {
          who: caller.user_id,
          compressed: true,
        });
      },
      {
        user: true,
        params: path,
        response: { 200: Upgraded, ...fails(400, 401, 404, 410, 503) },
        detail: operation({
          tags,
          operationId: "openWorkspaceSocket",
          summary: "Watch a workspace (WebSocket)",
          description:
            'A WebSocket of text messages `{"type", "data"}`: `ping` immediately and every 15 s, `data` with the whole workspace immediately and after each change, and `error` with `{"message"}`. A message from the client closes the connection.',
          sends: WorkspaceFrame,
          access: "owner",
          scope: "workspace:read",
          placement: "workspace",
        }),
      },
    );
};

class WorkspaceSocket implements SocketHandler {
  readonly #ctx: ApiContext;
  readonly #watchers: Watchers;
  readonly #heartbeat: Heartbeat;
  readonly #id: string;
  readonly #caller: UserCaller;
  #cleanups: (() => void)[] = [];

  constructor(
    ctx: ApiContext,
    { watchers, heartbeat }: { watchers: Watchers; heartbeat: Heartbeat },
    id: string,
    caller: UserCaller,
  ) {
    this.#ctx = ctx;
    this.#heartbeat = heartbeat;
    this.#watchers = watchers;
    this.#id = id;
    this.#caller = caller;
  }

  open(socket: Socket): void {
    socket.send(PING);
    this.#cleanups = [
      this.#heartbeat.join(() => socket.send(PING)),
      watchAccess(this.#ctx, this.#caller, makeWorkspaceAccess(this.#ctx, this.#id, canSeeWorkspace), (reason) =>
        socket.close(CLOSE.policy, reason),
      ),
      this.#watchers.watch(this.#id, {
        viewer: this.#caller,
        onData: (json) => socket.send(`{"type":"data","data":${json}}`, json.length > MIN_COMPRESSED_CHARS),
        onError: () => socket.send(`{"type":"error","data":${UNREADABLE}}`),
      }),
    ];
  }

  message(socket: Socket): void {
    socket.close(CLOSE.policy, "this stream takes no messages");
  }

  close(): void {
    for (const cleanUp of this.#cleanups.splice(0)) cleanUp();
  }
}
