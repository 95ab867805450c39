// Streams the containers of a workspace over one WebSocket. Each listing from the daemon is presented as this caller may see it. The stream
// ends when the client or the daemon disconnects or the caller loses access; the daemon is always notified (rule CO-5).
import { MAX_LISTING, presentListing } from "#domain/agents/containers.ts";
import { toWireError, type WebSocketFrames } from "#src/wire/index.ts";
import type { ApiContext } from "../context.ts";
import { dialAgentSocket } from "../http/dial-agent.ts";
import { CLOSE, type Socket, type SocketHandler } from "../http/socket.ts";

type Deps = Pick<ApiContext, "clock" | "agentHttp">;

export class ContainerWatch implements SocketHandler {
  readonly #frames: WebSocketFrames;
  readonly #compat: boolean;
  #isOver = false;

  private constructor(frames: WebSocketFrames, compat: boolean) {
    this.#frames = frames;
    this.#compat = compat;
  }

  /** Queries the daemon first, so that its refusal becomes the response. Throws like `requestContainers`. */
  static async begin(deps: Deps, agent_id: string, compat: boolean): Promise<ContainerWatch> {
    return new ContainerWatch(await dialAgentSocket(deps, agent_id, "/api/v0/containers/watch", MAX_LISTING), compat);
  }

  open(socket: Socket): void {
    this.#pass(socket).then(
      () => socket.close(CLOSE.internal, "the agent has ended the stream"),
      (error) => socket.close(CLOSE.internal, `the agent disconnected: ${toWireError(error).message}`),
    );
  }

  message(socket: Socket): void {
    socket.close(CLOSE.policy, "this stream takes no messages");
  }

  close(): void {
    this.#isOver = true;
    this.#frames.reset("The client has gone.");
  }

  async #pass(socket: Socket): Promise<void> {
    while (!this.#isOver) {
      const message = await this.#frames.next();
      if (message === undefined || message.kind === "close") return;
      if (message.kind === "ping") await this.#frames.send({ kind: "pong", bytes: message.bytes });
      if (message.kind === "text") socket.send(JSON.stringify(presentListing(message.text, this.#compat)));
    }
  }
}
