// One WebSocket that follows the containers of a workspace: each listing its daemon sends, shown as this caller understands it. Ends
// with the client, with the daemon and with the caller's right, and always lets the daemon know (rule CO-5).
import { AppError } from "#base/errors.ts";
import { secretBytes } from "#base/ids.ts";
import { MAX_LISTING, refusal, shownListing } from "#domain/agents/containers.ts";
import { WebSocketFrames } from "#src/wire/websocket-frames.ts";
import { asWireError } from "#src/wire/wire-error.ts";
import type { ApiContext } from "../context.ts";
import { CLOSE, type Socket, type SocketHandler } from "../http/socket.ts";

const LIMIT_MS = 30_000;

type Deps = Pick<ApiContext, "clock" | "agentHttp">;

export class ContainerWatch implements SocketHandler {
  readonly #frames: WebSocketFrames;
  readonly #compat: boolean;
  #over = false;

  private constructor(frames: WebSocketFrames, compat: boolean) {
    this.#frames = frames;
    this.#compat = compat;
  }

  /** Asks the daemon first, so that its refusal is the answer. Throws as `askContainers`. */
  static async begin({ clock, agentHttp }: Deps, agent_id: string, compat: boolean): Promise<ContainerWatch> {
    const late = new AbortController();
    const timer = clock.after(LIMIT_MS, () => late.abort());
    try {
      const answer = await agentHttp.upgrade(agent_id, {
        method: "GET",
        path: "/api/v0/containers/watch",
        headers: [
          ["connection", "Upgrade"],
          ["upgrade", "websocket"],
          ["sec-websocket-version", "13"],
          ["sec-websocket-key", Buffer.from(secretBytes(16)).toString("base64")],
        ],
        signal: late.signal,
      });
      if ("response" in answer) throw await refusal(answer.response);
      return new ContainerWatch(new WebSocketFrames(answer.stream, MAX_LISTING), compat);
    } catch (error) {
      if (!late.signal.aborted) throw error;
      throw new AppError("timeout", "The agent did not answer within 30 s.");
    } finally {
      timer.cancel();
    }
  }

  open(socket: Socket): void {
    this.#pass(socket).then(
      () => socket.close(CLOSE.internal, "the agent has ended the stream"),
      (error) => socket.close(CLOSE.internal, `the agent has gone away: ${asWireError(error).message}`),
    );
  }

  message(socket: Socket): void {
    socket.close(CLOSE.policy, "this stream takes no messages");
  }

  close(): void {
    this.#over = true;
    this.#frames.reset("The client has gone.");
  }

  async #pass(socket: Socket): Promise<void> {
    while (!this.#over) {
      const message = await this.#frames.next();
      if (message === undefined || message.kind === "close") return;
      if (message.kind === "ping") await this.#frames.send({ kind: "pong", bytes: message.bytes });
      if (message.kind === "text") socket.send(JSON.stringify(shownListing(message.text, this.#compat)));
    }
  }
}
