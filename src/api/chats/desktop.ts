// `GET /api/experimental/chats/{chat}/stream/desktop`: relays the VNC server of the chat's workspace (facts/chats 2.12, rules DT-2). The
// caller must have access to the chat and its workspace. The bytes are neither inspected nor stored.
import { AppError } from "#base/errors.ts";
import { noteUse, USE_INTERVAL_MS } from "#domain/agents/use.ts";
import { findVisibleChat } from "#domain/chats/find.ts";
import { toActivityUser } from "#domain/workspaces/find.ts";
import type { WebSocketFrames, WebSocketMessage } from "#src/wire/index.ts";
import type { ApiContext } from "../context.ts";
import { type Reservation, waitingInput } from "../http/body/budget.ts";
import { callers } from "../http/caller.ts";
import { dialAgentSocket } from "../http/dial-agent.ts";
import { operation } from "../http/operation.ts";
import { Relay } from "../http/relay.ts";
import { fails, Upgraded } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { CLOSE, type Socket, type SocketHandler } from "../http/socket.ts";
import { agentQuery, findAgentOfChat, upgradeToStream } from "./agent-socket.ts";
import { chatPath, tags } from "./paths.ts";

/** Maximum bytes of one message from the daemon, which reads at most as many at a time. */
const MAX_MESSAGE_BYTES = 4 * 1024 * 1024;
/** The client is paused when more than this is waiting for the desktop. */
const PAUSE_BYTES = 64 * 1024;
/** Maximum bytes waiting for the desktop; a client that sends more is disconnected. */
const MAX_BUFFERED_BYTES = 4 * 1024 * 1024;

export const chatDesktop = (ctx: ApiContext) =>
  routes({ prefix: "/api/experimental/chats" })
    .use(callers)
    .get(
      "/:chat/stream/desktop",
      async ({ caller, params, query, request }) => {
        const chat = await findVisibleChat(ctx, params.chat, caller);
        const { agent_id, workspace_id } = await findAgentOfChat(ctx, chat, caller, query.agent);
        const path = "/api/v0/desktop/vnc";
        const frames = await dialAgentSocket(ctx, agent_id, path, MAX_MESSAGE_BYTES, caller.user_id).catch(
          rethrowDesktopError,
        );
        const onUse = () =>
          void noteUse(ctx, workspace_id, { reason: "terminal", agent_id, by: toActivityUser(caller) });
        const stream = new DesktopStream(ctx, frames, { user_id: caller.user_id, onUse });
        return upgradeToStream(ctx, request, caller, chat, stream);
      },
      {
        user: true,
        params: chatPath,
        query: agentQuery,
        response: { 101: Upgraded, ...fails(400, 401, 403, 404, 408, 409, 503) },
        detail: operation({
          tags,
          operationId: "openChatDesktop",
          summary: "Connect to the desktop of a chat's workspace",
          description:
            "A WebSocket of binary messages: raw RFB (VNC) bytes in both directions, split at arbitrary positions. Starts a desktop if none is running: with the VNC server in SLIPWAY_DESKTOP_VNC, Xvnc, or Xvfb with x11vnc. Returns 400 if the workspace can't be reached, and 409 if there is no desktop. Closes with 1011 when the agent or the desktop disconnects.",
          // Keys and clicks run programs without approval.
          scope: ["chat:update", "workspace:ssh"],
          placement: "chat_workspace",
        }),
      },
    );

/** The agent returns 500 when the workspace has no VNC server or it does not start; that is not a failure of this server. */
const rethrowDesktopError = (error: unknown): never => {
  if (!(error instanceof AppError) || error.kind !== "internal") throw error;
  throw new AppError("conflict", error.message, { detail: error.detail, cause: error });
};

class DesktopStream implements SocketHandler {
  readonly #clock: ApiContext["clock"];
  readonly #relay: Relay;
  readonly #frames: WebSocketFrames;
  readonly #onUse: () => void;
  readonly #reservation: Reservation;
  #lastNotedAt = Number.NEGATIVE_INFINITY;
  #waitingBytes = 0;

  constructor(
    { clock }: Pick<ApiContext, "clock">,
    frames: WebSocketFrames,
    { user_id, onUse }: { readonly user_id: string; readonly onUse: () => void },
  ) {
    this.#clock = clock;
    this.#frames = frames;
    this.#onUse = onUse;
    this.#reservation = waitingInput.open(user_id);
    this.#relay = new Relay(clock, frames);
  }

  open(socket: Socket): void {
    this.#relay.run(socket, toBytes);
  }

  message(socket: Socket, data: string | Uint8Array): void {
    const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data.slice();
    this.#waitingBytes += bytes.byteLength;
    if (this.#waitingBytes > MAX_BUFFERED_BYTES) {
      socket.close(CLOSE.policy, "more than the desktop reads");
      return;
    }
    const refusal = this.#reservation.tryAdd(bytes.byteLength);
    if (refusal !== undefined) return void socket.close(CLOSE.tryLater, refusal);
    if (this.#waitingBytes > PAUSE_BYTES) socket.pause();
    this.#noteUse();
    const onSent = (): void => {
      this.#reservation.reduce(bytes.byteLength);
      const wasPaused = this.#waitingBytes > PAUSE_BYTES;
      this.#waitingBytes -= bytes.byteLength;
      if (wasPaused && this.#waitingBytes <= PAUSE_BYTES) socket.resume();
    };
    // The relay, which reads from the daemon, reports that the daemon has disconnected.
    this.#frames.send({ kind: "binary", bytes }).then(onSent, onSent);
  }

  drain(): void {
    this.#relay.drain();
  }

  close(): void {
    this.#reservation.release();
    this.#relay.close();
  }

  #noteUse(): void {
    const now = this.#clock.monotonic();
    if (now - this.#lastNotedAt < USE_INTERVAL_MS) return;
    this.#lastNotedAt = now;
    this.#onUse();
  }
}

const toBytes = (message: WebSocketMessage): Uint8Array | undefined =>
  message.kind === "binary" ? message.bytes : undefined;
