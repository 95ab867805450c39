// The server's end of one tunnel: a WebSocket as a byte stream, yamux on it, the server opening the streams. Ends when a newer tunnel of
// the agent takes its place or the agent's build is no longer the latest (rules TN-4, TN-5).
import { HEARTBEAT_MS, INACTIVE_MS } from "#actors/agent/status.ts";
import { log } from "#base/log.ts";
import { isSignedIn, placeOf } from "#domain/agents/find.ts";
import { ByteStream, endedBy } from "#src/wire/byte-stream.ts";
import { YamuxSession } from "#src/wire/yamux.ts";
import type { ApiContext } from "../context.ts";
import { CLOSE, type Socket, type SocketHandler } from "../http/socket.ts";

export class TunnelConnection implements SocketHandler {
  readonly #ctx: ApiContext;
  readonly #agentId: string;
  #stream: ByteStream | undefined;
  #session: YamuxSession | undefined;
  #stops: (() => void)[] = [];

  constructor(ctx: ApiContext, agent_id: string) {
    this.#ctx = ctx;
    this.#agentId = agent_id;
  }

  open(socket: Socket): void {
    const { clock, topics, dialer } = this.#ctx;
    const stream = new ByteStream({
      send: (bytes) => socket.transmit(bytes),
      close: (code = CLOSE.normal, reason = "") => socket.close(code, reason),
    });
    const session = new YamuxSession(stream, {
      role: "client",
      clock,
      ping_interval_ms: HEARTBEAT_MS,
      ping_timeout_ms: INACTIVE_MS,
    });
    this.#stream = stream;
    this.#session = session;
    const goAway = (reason: string): void => stream.close(CLOSE.goingAway, reason);
    this.#stops = [
      topics.subscribe("agent_gone", this.#agentId, () => goAway("a newer build has taken over")),
      dialer.join(this.#agentId, session, () => goAway("a newer tunnel of this agent has taken over")),
    ];
    void this.#refuseStreams(session);
    this.#checkBuild(goAway).catch((error) => {
      log("agents").warn("the build of agent {agent_id} cannot be read: {error}", { agent_id: this.#agentId, error });
      stream.close(CLOSE.tryLater, "the server is overloaded, retry");
    });
  }

  message(_socket: Socket, data: string | Uint8Array): void {
    this.#stream?.push(data);
  }

  drain(): void {
    this.#stream?.drain();
  }

  close(_socket: Socket, code: number, reason: string): void {
    for (const stop of this.#stops) stop();
    this.#stream?.end(endedBy(code, reason));
    this.#session?.close("The agent has gone away.");
  }

  /** Only the server asks here. */
  async #refuseStreams(session: YamuxSession): Promise<void> {
    for (;;) {
      const stream = await session.accept();
      if (stream === undefined) return;
      stream.reset("The server takes no streams.");
    }
  }

  /** The build may have changed between signing in and listening for it. */
  async #checkBuild(goAway: (reason: string) => void): Promise<void> {
    const place = await placeOf(this.#ctx.store, this.#agentId);
    if (!place || !isSignedIn(place)) goAway("a newer build has taken over");
  }
}
