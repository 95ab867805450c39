// Relays a daemon's WebSocket to one client with backpressure: the daemon is not read while the client does not read, and a stalled client
// is disconnected (rule GS-5). Used by the git and desktop streams.
import type { Clock, Timer } from "#base/clock.ts";
import { asWireError, Wakeup, type WebSocketFrames, type WebSocketMessage } from "#src/wire/index.ts";
import { CLOSE, type Socket } from "../http/socket.ts";

/** A client that reads nothing for this long is disconnected. */
const STALLED_MS = 20_000;

/** Converts a message for the client; undefined skips it. Throws WireError for invalid messages. */
export type Shown = (message: WebSocketMessage) => string | Uint8Array | undefined;

export class Relay {
  readonly #clock: Clock;
  readonly #frames: WebSocketFrames;
  readonly #room = new Wakeup();
  #over = false;

  constructor(clock: Clock, frames: WebSocketFrames) {
    this.#clock = clock;
    this.#frames = frames;
  }

  /** Relays until the daemon ends the stream or disconnects, then closes the socket. */
  run(socket: Socket, shown: Shown): void {
    this.#pass(socket, shown).then(
      (reason) => socket.close(CLOSE.internal, reason || "the agent has ended the stream"),
      (error) => socket.close(CLOSE.internal, `the agent has gone away: ${asWireError(error).message}`),
    );
  }

  /** Called when the client can take more. */
  drain(): void {
    this.#room.ring();
  }

  /** Called when the client has disconnected. */
  close(): void {
    this.#over = true;
    this.#room.ring();
    this.#frames.reset("The client has gone.");
  }

  async #pass(socket: Socket, shown: Shown): Promise<string> {
    while (!this.#over) {
      const message = await this.#frames.next();
      if (message === undefined) return "";
      if (message.kind === "close") return message.reason;
      if (message.kind === "ping") await this.#frames.send({ kind: "pong", bytes: message.bytes });
      const data = shown(message);
      if (data !== undefined && socket.transmit(data) < 0) await this.#untilRead(socket);
    }
    return "";
  }

  async #untilRead(socket: Socket): Promise<void> {
    const stalled: Timer = this.#clock.after(STALLED_MS, () => socket.closeSlow());
    try {
      while (!this.#over && socket.waiting > 0) await this.#room.wait();
    } finally {
      stalled.cancel();
    }
  }
}
