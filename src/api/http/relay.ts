// Relays a daemon's WebSocket to one client with backpressure: the daemon is not read while the client does not read, and a stalled client
// is disconnected (rule GS-5).
import type { Clock, Timer } from "#base/clock.ts";
import { toWireError, Wakeup, type WebSocketFrames, type WebSocketMessage } from "#src/wire/index.ts";
import { CLOSE, type Socket } from "./socket.ts";

/** A client that reads nothing for this long is disconnected. */
const STALL_TIMEOUT_MS = 20_000;

/** Converts a message for the client; undefined skips it. Throws WireError for invalid messages. */
export type ConvertMessage = (
  message: WebSocketMessage,
) => string | Uint8Array | undefined | Promise<string | undefined>;

export class Relay {
  readonly #clock: Clock;
  readonly #frames: WebSocketFrames;
  readonly #drained = new Wakeup();
  #isOver = false;

  constructor(clock: Clock, frames: WebSocketFrames) {
    this.#clock = clock;
    this.#frames = frames;
  }

  /** Relays until the daemon ends the stream or disconnects, then closes the socket. */
  run(socket: Socket, convert: ConvertMessage): void {
    this.#forward(socket, convert).then(
      (reason) => socket.close(CLOSE.internal, reason || "the agent has ended the stream"),
      (error) => socket.close(CLOSE.internal, `the agent disconnected: ${toWireError(error).message}`),
    );
  }

  /** Called when the client can take more. */
  drain(): void {
    this.#drained.wake();
  }

  /** Called when the client has disconnected. */
  close(): void {
    this.#isOver = true;
    this.#drained.wake();
    this.#frames.reset("The client has gone.");
    this.#frames.discard();
  }

  async #forward(socket: Socket, convert: ConvertMessage): Promise<string> {
    try {
      while (!this.#isOver) {
        const message = await this.#frames.next();
        if (message === undefined) return "";
        if (message.kind === "close") return message.reason;
        if (message.kind === "ping") await this.#frames.send({ kind: "pong", bytes: message.bytes });
        const data = await convert(message);
        if (data !== undefined && socket.transmit(data) < 0) await this.#waitForDrain(socket);
      }
      return "";
    } finally {
      this.#frames.discard();
    }
  }

  async #waitForDrain(socket: Socket): Promise<void> {
    const stallTimer: Timer = this.#clock.after(STALL_TIMEOUT_MS, () => {
      socket.closeSlow();
      this.#frames.discard();
    });
    try {
      while (!this.#isOver && socket.waiting > 0) await this.#drained.wait();
    } finally {
      stallTimer.cancel();
    }
  }
}
