// What comes from a daemon's WebSocket, handed on to one client at the client's pace: nothing is read from the daemon while the client
// does not read, and a client that takes nothing for a while is closed (rule GS-5). Used by the streams of git and desktop.
import type { Clock, Timer } from "#base/clock.ts";
import { asWireError, Wakeup, type WebSocketFrames, type WebSocketMessage } from "#src/wire/index.ts";
import { CLOSE, type Socket } from "../http/socket.ts";

/** A reader that takes nothing for this long is closed. */
const STALLED_MS = 20_000;

/** What goes to the client; undefined: nothing. Throws WireError for what no honest daemon says. */
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

  /** Closes the socket when the daemon ends the stream or goes away. */
  run(socket: Socket, shown: Shown): void {
    this.#pass(socket, shown).then(
      (reason) => socket.close(CLOSE.internal, reason || "the agent has ended the stream"),
      (error) => socket.close(CLOSE.internal, `the agent has gone away: ${asWireError(error).message}`),
    );
  }

  /** The client takes more. */
  drain(): void {
    this.#room.ring();
  }

  /** The client has gone. */
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
