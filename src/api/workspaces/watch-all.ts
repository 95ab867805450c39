// Watches all workspaces a user can see, as server-sent events or over a WebSocket, depending on the request (rules WS-1 to WS-6).
import { t } from "elysia";
import { WorkspacesEvent } from "#schema/workspaces/workspace-watch.ts";
import type { ApiContext } from "../context.ts";
import { callers, type UserCaller } from "../http/caller.ts";
import { type EventStream, eventStream } from "../http/event-stream.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { closeWhenKeyRevoked, watchKey } from "../http/revocation.ts";
import { routes } from "../http/routes.ts";
import { CLOSE, type Socket, type SocketHandler } from "../http/socket.ts";
import { type ChangeLog, getChangeLog } from "./change-log.ts";
import { Heartbeat } from "./heartbeat.ts";
import { WorkspacesFollower } from "./watch-all-follower.ts";

const PING = '{"type":"ping"}';
const UNREADABLE = JSON.stringify({ message: "The workspaces cannot be read now." });
/** Maximum bytes waiting for a client before the next rows are read. */
const PAUSE_BYTES = 128 * 1024;

export const watchAll = (ctx: ApiContext) => {
  const changes = getChangeLog(ctx);
  const heartbeat = new Heartbeat(ctx.clock);
  return routes()
    .use(callers)
    .get(
      "/watch",
      ({ caller, query, request }) => {
        const after = query.after_id;
        if (request.headers.has("upgrade")) {
          const socket = new WorkspacesSocket({ ctx, changes, heartbeat, caller, after });
          return ctx.sockets.upgrade(request, closeWhenKeyRevoked(ctx, caller, socket), { who: caller.user_id });
        }
        return eventStream(ctx, request, (stream) => {
          const follower = new WorkspacesFollower(ctx, changes, caller, {
            send: (json) => sendEvent(stream, json),
            fail: () => {
              stream.send("error", UNREADABLE);
              stream.end();
            },
          });
          const unwatchKey = watchKey(ctx, caller, () => stream.end());
          follower.begin(after);
          return () => {
            follower.end();
            unwatchKey();
          };
        });
      },
      {
        user: true,
        query: t.Object({
          after_id: t.Optional(
            t.String({
              maxLength: 64,
              description: "The last `id` of an earlier stream. Only missed changes are sent.",
            }),
          ),
        }),
        response: { 200: t.Unknown({ description: "A stream of server-sent events." }), ...fails(400, 401, 503) },
        detail: operation({
          tags: ["Workspaces"],
          operationId: "watchWorkspaces",
          summary: "Watch all workspaces",
          answers: ["text/event-stream"],
          description:
            'Sends JSON messages about all workspaces that the caller can see. First, `{"type": "snapshot", "workspaces", "more", "id"}` with all of them, in several messages while `more`. Then, `{"type": "changes", "changed", "removed", "id"}` after each change of a workspace or of access to it. Deleted workspaces are never included. `{"type": "access"}` means that the caller\'s roles or memberships have changed; a snapshot follows. `{"type": "templates", "changed"}` lists visible templates that were changed or deleted, or whose versions were archived, renamed or promoted. To resume, send the last non-empty `id` as `after_id`: the server sends the missed changes, or a snapshot if they are no longer available. As server-sent events, messages are `data` events, with a `ping` every 15 s. An upgrade request gets a WebSocket, whose pings are `{"type": "ping"}`. A message from the client closes the connection.',
          sends: WorkspacesEvent,
          access: "users",
          scope: "workspace:read",
          placement: "here",
        }),
      },
    );
};

const sendEvent = (stream: EventStream, json: string): Promise<boolean> =>
  stream.send("data", json) ? stream.waitForRoom(PAUSE_BYTES) : Promise.resolve(false);

type SocketOptions = {
  readonly ctx: ApiContext;
  readonly changes: ChangeLog;
  readonly heartbeat: Heartbeat;
  readonly caller: UserCaller;
  readonly after: string | undefined;
};

class WorkspacesSocket implements SocketHandler {
  readonly #options: SocketOptions;
  #follower: WorkspacesFollower | undefined;
  #leaveHeartbeat: () => void = () => {};
  #resume: (() => void) | undefined;

  constructor(options: SocketOptions) {
    this.#options = options;
  }

  open(socket: Socket): void {
    const { ctx, changes, heartbeat, caller, after } = this.#options;
    socket.send(PING);
    this.#leaveHeartbeat = heartbeat.join(() => socket.send(PING));
    this.#follower = new WorkspacesFollower(ctx, changes, caller, {
      send: (json) => this.#send(socket, json),
      fail: () => socket.close(CLOSE.internal, "the workspaces cannot be read now"),
    });
    this.#follower.begin(after);
  }

  message(socket: Socket): void {
    socket.close(CLOSE.policy, "this stream takes no messages");
  }

  drain(): void {
    this.#resume?.();
  }

  close(): void {
    this.#follower?.end();
    this.#leaveHeartbeat();
    this.#resume?.();
  }

  async #send(socket: Socket, json: string): Promise<boolean> {
    if (!socket.send(json, true)) return false;
    while (!socket.closing && socket.waiting > PAUSE_BYTES) {
      await new Promise<void>((resolve) => {
        this.#resume = resolve;
      });
    }
    return !socket.closing;
  }
}
