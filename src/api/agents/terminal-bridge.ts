// Connects a WebSocket to a terminal of the workspace: input goes to the daemon, output returns as binary messages with backpressure
// (facts/platform 5.6, rules TM-1 to TM-10). A paste of any size waits until the program reads it; a message that is not a JSON object is
// rejected.
import { AppError } from "#base/errors.ts";
import { log } from "#base/log.ts";
import {
  AGENT_PORT,
  type Duplex,
  encodeTerminalRequest,
  JsonObjects,
  MAX_INPUT,
  type TerminalRequest,
  toWireError,
  Wakeup,
} from "#src/wire/index.ts";
import type { ApiContext } from "../context.ts";
import { type Reservation, waitingInput } from "../http/body/budget.ts";
import { CLOSE, type Socket, type SocketHandler } from "../http/socket.ts";

/** The client is paused when this much input is waiting for the workspace, and resumed below half of it. */
const PAUSE_BYTES = 256 * 1024;
/** A client that sends more despite being paused is disconnected. */
const MAX_WAITING_BYTES = 4 * MAX_INPUT;
/** Longer output is split, so that one message never blocks the connection. */
const PIECE_BYTES = 64 * 1024;

export type TerminalEvents = {
  /** The user who types in the terminal. */
  readonly user_id: string;
  /** Called when the terminal has opened and for each input. */
  onActivity(): void;
  /** Called when the terminal has opened. The returned function is called when the socket has disconnected. */
  onOpened(): (reason: string) => void;
};

export class TerminalBridge implements SocketHandler {
  readonly #ctx: Pick<ApiContext, "dialer">;
  readonly #agentId: string;
  readonly #request: TerminalRequest;
  readonly #events: TerminalEvents;
  readonly #objects = new JsonObjects(MAX_INPUT);
  readonly #closed = new AbortController();
  readonly #drained = new Wakeup();
  readonly #inputAdded = new Wakeup();
  #input: Uint8Array[] = [];
  #waitingBytes = 0;
  #isSocketFull = false;
  #isPaused = false;
  readonly #reservation: Reservation;
  #endConnection: ((reason: string) => void) | undefined;

  constructor(ctx: Pick<ApiContext, "dialer">, agent_id: string, request: TerminalRequest, events: TerminalEvents) {
    this.#ctx = ctx;
    this.#agentId = agent_id;
    this.#request = request;
    this.#events = events;
    this.#reservation = waitingInput.open(events.user_id);
  }

  open(socket: Socket): void {
    this.#run(socket).catch((error) => {
      log("agents").error("a terminal of agent {agent_id} failed: {error}", { agent_id: this.#agentId, error });
      socket.close(CLOSE.internal, "the terminal failed");
    });
  }

  message(socket: Socket, data: string | Uint8Array): void {
    const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data.slice();
    try {
      this.#objects.push(bytes);
    } catch (error) {
      const { failure, message } = toWireError(error);
      socket.close(failure === "too_large" ? CLOSE.tooBig : CLOSE.policy, message);
      return;
    }
    this.#waitingBytes += bytes.byteLength;
    if (this.#waitingBytes > MAX_WAITING_BYTES) {
      socket.close(CLOSE.policy, "the client sent more input than the terminal can buffer");
      return;
    }
    const refusal = this.#reservation.tryAdd(bytes.byteLength);
    if (refusal !== undefined) return void socket.close(CLOSE.tryLater, refusal);
    this.#input.push(bytes);
    if (this.#waitingBytes > PAUSE_BYTES && !this.#isPaused) {
      this.#isPaused = true;
      socket.pause();
    }
    this.#inputAdded.wake();
    this.#events.onActivity();
  }

  drain(): void {
    this.#isSocketFull = false;
    this.#drained.wake();
  }

  close(_socket: Socket, _code: number, reason: string): void {
    this.#endConnection?.(reason || "the client disconnected");
    this.#closed.abort();
    this.#reservation.release();
    this.#input = [];
    this.#inputAdded.wake();
    this.#drained.wake();
  }

  async #run(socket: Socket): Promise<void> {
    let stream: Duplex;
    try {
      stream = await this.#ctx.dialer.dial(this.#agentId, AGENT_PORT.terminal, this.#closed.signal);
      await stream.write(encodeTerminalRequest(this.#request));
    } catch (error) {
      socket.close(CLOSE.internal, formatError(error));
      return;
    }
    this.#events.onActivity();
    if (!this.#closed.signal.aborted) this.#endConnection = this.#events.onOpened();
    const hangUp = (): void => stream.reset("The client has gone.");
    this.#closed.signal.addEventListener("abort", hangUp, { once: true });
    if (this.#closed.signal.aborted) hangUp();
    void this.#forwardInput(socket, stream);
    try {
      for (;;) {
        const chunk = await stream.read();
        if (chunk === undefined) break;
        if (!(await this.#forwardOutput(socket, chunk))) return;
      }
      socket.close(CLOSE.normal, "the command has ended");
    } catch (error) {
      const { failure, message } = toWireError(error);
      if (failure === "reset" && this.#isSocketFull) socket.closeSlow();
      else
        socket.close(
          CLOSE.internal,
          failure === "reset" ? "the agent has ended the connection" : formatDisconnect(message),
        );
    }
  }

  async #forwardInput(socket: Socket, stream: Duplex): Promise<void> {
    try {
      while (!this.#closed.signal.aborted) {
        const bytes = this.#input.shift();
        if (bytes === undefined) {
          await this.#inputAdded.wait();
          continue;
        }
        await stream.write(bytes);
        this.#waitingBytes -= bytes.byteLength;
        this.#reservation.reduce(bytes.byteLength);
        if (this.#isPaused && this.#waitingBytes < PAUSE_BYTES / 2) {
          this.#isPaused = false;
          socket.resume();
        }
      }
    } catch {
      // The reading side reports the reason.
    }
  }

  /** Returns false when the socket has closed. */
  async #forwardOutput(socket: Socket, chunk: Uint8Array): Promise<boolean> {
    for (let offset = 0; offset < chunk.byteLength; offset += PIECE_BYTES) {
      while (this.#isSocketFull && !this.#closed.signal.aborted) await this.#drained.wait();
      if (this.#closed.signal.aborted) return false;
      const sentBytes = socket.transmit(chunk.subarray(offset, offset + PIECE_BYTES));
      if (sentBytes === 0) return false;
      this.#isSocketFull = sentBytes < 0;
    }
    return true;
  }
}

const formatDisconnect = (message: string): string => `the agent disconnected: ${message}`;

const formatError = (error: unknown): string => {
  if (!(error instanceof AppError)) return "the terminal could not be opened";
  return error.detail === "" ? error.message : `${error.message} ${error.detail}`;
};
