// The server's end of a tunnel: yamux over a WebSocket, with the server opening the streams. It closes when a newer tunnel of the agent
// takes over or the agent's build is no longer the latest (rules TN-4, TN-5).
import { log } from "#base/log.ts";
import type { ApiContext } from "../context.ts";
import type { AgentCaller } from "../http/caller.ts";
import type { Socket } from "../http/socket.ts";
import { YamuxConnection } from "./yamux-connection.ts";
import { YamuxSocket } from "./yamux-socket.ts";

const MAX_REFUSED_STREAMS = 64;

type TunnelAgent = Pick<AgentCaller, "agent_id" | "token_generation">;

export class TunnelConnection extends YamuxConnection {
  readonly #ctx: ApiContext;
  readonly #agent: TunnelAgent;

  constructor(ctx: ApiContext, { agent_id, token_generation }: TunnelAgent) {
    super();
    this.#ctx = ctx;
    this.#agent = { agent_id, token_generation };
  }

  open(socket: Socket): void {
    const { agent_id, token_generation } = this.#agent;
    const yamux = new YamuxSocket(this.#ctx, socket, { agent_id, token_generation, role: "client" });
    this.yamux = yamux;
    yamux.onEnd(
      this.#ctx.dialer.join(agent_id, yamux.session, () => yamux.goAway("a newer tunnel of this agent has taken over")),
    );
    void this.#refuseStreams(yamux);
    yamux.checkSignedIn().catch((error) => {
      log("agents").warn("agent {agent_id} cannot be read: {error}", { agent_id, error });
      yamux.closeForRetry();
    });
  }

  close(_socket: Socket, code: number, reason: string): void {
    this.yamux?.end(code, reason, "The agent has gone away.");
  }

  /** Rejects streams from the daemon, because only the server opens streams on a tunnel, and closes a tunnel that has opened many. */
  async #refuseStreams(yamux: YamuxSocket): Promise<void> {
    for (let refusedCount = 0; refusedCount < MAX_REFUSED_STREAMS; refusedCount++) {
      const stream = await yamux.session.accept();
      if (stream === undefined) return;
      stream.reset("The server takes no streams.");
    }
    yamux.goAway("only the server opens streams");
  }
}
