// The queue of messages that a worker sends, in order. It buffers while the connection is slow; it is bounded because each job's output is.
import type { Clock } from "#base/clock.ts";
import { failpoint } from "#base/failpoint.ts";
import { type Line, MAX_LINES, MAX_OUTPUT_BYTES, type WorkerMessage } from "./protocol.ts";

/** Maximum bytes buffered in the socket. */
const MAX_SOCKET_BYTES = 256 * 1024;
const RETRY_MS = 20;
/** Maximum characters of lines in one message. */
const MAX_BATCH_CHARS = 256 * 1024;

type Sink = Pick<WebSocket, "send" | "bufferedAmount" | "readyState">;

export class Outbox {
  readonly #socket: Sink;
  readonly #clock: Clock;
  readonly #waiting: WorkerMessage[] = [];
  #isPumping = false;

  constructor(socket: Sink, clock: Clock) {
    this.#socket = socket;
    this.#clock = clock;
  }

  /** Sends a message after all earlier ones. */
  enqueue(message: WorkerMessage): void {
    this.#waiting.push(message);
    if (this.#isPumping) return;
    this.#isPumping = true;
    // Lines of one turn of the event loop share a message.
    setImmediate(() => this.#sendWaiting());
  }

  /** Sends a message immediately: heartbeats must not wait behind a log. */
  sendNow(message: WorkerMessage): void {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }

  #sendWaiting(): void {
    while (this.#waiting.length > 0) {
      if (this.#socket.readyState !== WebSocket.OPEN) {
        this.#waiting.length = 0;
        break;
      }
      if (this.#socket.bufferedAmount > MAX_SOCKET_BYTES) {
        this.#clock.after(RETRY_MS, () => this.#sendWaiting());
        return;
      }
      const next = this.#nextMessage();
      this.#socket.send(JSON.stringify(next));
      if (next.type === "left") failpoint("build_pushed");
      if (next.type === "done") failpoint("build_done");
    }
    this.#isPumping = false;
  }

  /** Returns the first message, merged with lines of the same job that follow it. */
  #nextMessage(): WorkerMessage {
    const first = this.#waiting.shift() as WorkerMessage;
    if (first.type !== "log") return first;
    const lines = [...first.lines];
    let size = lines.reduce((sum, { output }) => sum + output.length, 0);
    for (;;) {
      const next = this.#waiting[0];
      if (next?.type !== "log" || next.job_id !== first.job_id || lines.length + next.lines.length > MAX_LINES) break;
      size += next.lines.reduce((sum, { output }) => sum + output.length, 0);
      if (size > MAX_BATCH_CHARS) break;
      lines.push(...next.lines);
      this.#waiting.shift();
    }
    return { ...first, lines };
  }
}

/** Limits the output of one job: lines after the limit are dropped, as the server would do. The line that exceeds it is still sent. */
export class OutputLimit {
  #left = MAX_OUTPUT_BYTES;

  /** Returns the lines that still fit. Several lines in one text stay together. */
  fitLine(line: Line): Line | undefined {
    if (this.#left < 0) return undefined;
    const output = line.output.slice(0, MAX_OUTPUT_BYTES);
    // An empty line also counts.
    this.#left -= Buffer.byteLength(output) + 1;
    return { ...line, output, stage: line.stage.slice(0, 4096) };
  }
}
