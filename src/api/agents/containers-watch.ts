// Streams the containers of a workspace over one WebSocket. Each listing from the daemon is converted to the format of the caller's client.
// The stream ends when the client or the daemon disconnects or the caller loses access; the daemon is always notified (rule CO-5).
import { MAX_LISTING, presentListing } from "#domain/agents/containers.ts";
import type { WebSocketFrames } from "#src/wire/index.ts";
import type { ApiContext } from "../context.ts";
import type { UserCaller } from "../http/caller.ts";
import { dialAgentSocket } from "../http/dial-agent.ts";
import { Relay } from "../http/relay.ts";
import { CLOSE, type Socket, type SocketHandler } from "../http/socket.ts";

type Deps = Pick<ApiContext, "clock" | "agentHttp" | "callMemory">;

export class ContainerWatch implements SocketHandler {
  readonly #relay: Relay;
  readonly #compat: boolean;

  private constructor(clock: ApiContext["clock"], frames: WebSocketFrames, compat: boolean) {
    this.#relay = new Relay(clock, frames);
    this.#compat = compat;
  }

  /** Queries the daemon first, so that its refusal becomes the response. Throws like `requestContainers`. */
  static async begin(deps: Deps, agent_id: string, { user_id, compat }: UserCaller): Promise<ContainerWatch> {
    const frames = await dialAgentSocket(deps, agent_id, "/api/v0/containers/watch", MAX_LISTING, user_id);
    return new ContainerWatch(deps.clock, frames, compat);
  }

  open(socket: Socket): void {
    this.#relay.run(socket, (message) =>
      message.kind === "text" ? JSON.stringify(presentListing(message.text, this.#compat)) : undefined,
    );
  }

  message(socket: Socket): void {
    socket.close(CLOSE.policy, "this stream takes no messages");
  }

  drain(): void {
    this.#relay.drain();
  }

  close(): void {
    this.#relay.close();
  }
}
