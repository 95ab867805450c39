// Runs a yamux session over a WebSocket of an agent's daemon, and closes it when the agent's build is no longer the latest. Both
// connections of a daemon use it (connection.ts and tunnel-connection.ts).
import { HEARTBEAT_MS, INACTIVITY_TIMEOUT_MS } from "#actors/agent/status.ts";
import { findAgentById, isSignedIn } from "#domain/agents/find.ts";
import { ByteStream, toCloseError, YamuxSession } from "#src/wire/index.ts";
import type { ApiContext } from "../context.ts";
import { CLOSE, type Socket } from "../http/socket.ts";

export type YamuxSocketOptions = {
  readonly agent_id: string;
  /** The token that opened the socket. */
  readonly token_generation: number;
  /** Decides who opens streams with odd IDs. */
  readonly role: "server" | "client";
  /** Called on each heartbeat with the round-trip time of a ping. */
  readonly onHeartbeat?: (round_trip_ms: number) => void;
};

/** Maximum unread bytes of all streams together. In a tunnel, slow clients of apps leave bytes unread. */
const MAX_UNREAD_BYTES = { server: 16 * 1024 * 1024, client: 64 * 1024 * 1024 };

const TAKEN_OVER = "a newer build has taken over";
/** The daemon connects again with its new token. */
export const TOKEN_RENEWED = "the agent's token was renewed";

export class YamuxSocket {
  readonly session: YamuxSession;
  readonly #ctx: Pick<ApiContext, "store" | "clock" | "topics">;
  readonly #agent_id: string;
  readonly #token_generation: number;
  readonly #stream: ByteStream;
  readonly #cleanups: (() => void)[];

  constructor(ctx: Pick<ApiContext, "store" | "clock" | "topics">, socket: Socket, options: YamuxSocketOptions) {
    const { agent_id, token_generation, role, onHeartbeat } = options;
    this.#ctx = ctx;
    this.#agent_id = agent_id;
    this.#token_generation = token_generation;
    this.#stream = new ByteStream({
      send: (bytes) => socket.transmit(bytes),
      close: (code = CLOSE.normal, reason = "") => socket.close(code, reason),
    });
    this.session = new YamuxSession(this.#stream, {
      role,
      clock: ctx.clock,
      max_unread: MAX_UNREAD_BYTES[role],
      ping_interval_ms: HEARTBEAT_MS,
      ping_timeout_ms: INACTIVITY_TIMEOUT_MS,
      alive: onHeartbeat,
    });
    this.#cleanups = [ctx.topics.subscribe("agent_gone", agent_id, () => this.goAway(TAKEN_OVER))];
  }

  /** Registers a function to call when the session has ended. */
  onEnd(stop: () => void): void {
    this.#cleanups.push(stop);
  }

  push(data: string | Uint8Array): void {
    this.#stream.push(data);
  }

  drain(): void {
    this.#stream.drain();
  }

  /** Closes the socket. The daemon reconnects unless its token has become invalid. */
  goAway(reason: string): void {
    this.#stream.close(CLOSE.goingAway, reason);
  }

  /** Closes the socket and makes the daemon reconnect soon. */
  closeForRetry(): void {
    this.#stream.close(CLOSE.tryLater, "the server is overloaded, retry");
  }

  /** Checks the build and the token again, because they may have changed between authentication and the subscription. */
  async checkSignedIn(): Promise<void> {
    const agent = await findAgentById(this.#ctx.store, this.#agent_id);
    if (!agent || !isSignedIn(agent)) this.goAway(TAKEN_OVER);
    else if (agent.token_generation !== this.#token_generation) this.goAway(TOKEN_RENEWED);
  }

  /** Called when the socket has closed. */
  end(code: number, reason: string, message?: string): void {
    for (const stop of this.#cleanups) stop();
    this.#stream.end(toCloseError(code, reason));
    this.session.close(message);
  }
}
