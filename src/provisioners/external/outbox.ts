// Queues the messages that a worker sends while its connection is slow. The queue is limited, because the output of each job is limited.
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
  readonly #queue: WorkerMessage[] = [];
  #isSending = false;

  constructor(socket: Sink, clock: Clock) {
    this.#socket = socket;
    this.#clock = clock;
  }

  /** Sends a message after all earlier ones. */
  enqueue(message: WorkerMessage): void {
    this.#queue.push(message);
    if (this.#isSending) return;
    this.#isSending = true;
    // Lines that are added in the same turn of the event loop share a message.
    setImmediate(() => this.#sendQueued());
  }

  /** Sends a message before the queued ones, because a heartbeat must not wait for a long log. */
  sendNow(message: WorkerMessage): void {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }

  #sendQueued(): void {
    while (this.#queue.length > 0) {
      if (this.#socket.readyState !== WebSocket.OPEN) {
        this.#queue.length = 0;
        break;
      }
      if (this.#socket.bufferedAmount > MAX_SOCKET_BYTES) {
        this.#clock.after(RETRY_MS, () => this.#sendQueued());
        return;
      }
      const next = this.#nextMessage();
      this.#socket.send(JSON.stringify(next));
      if (next.type === "left") failpoint("build_pushed");
      if (next.type === "done") failpoint("build_done");
    }
    this.#isSending = false;
  }

  /** Returns the first message, merged with lines of the same job that follow it. */
  #nextMessage(): WorkerMessage {
    const first = this.#queue.shift() as WorkerMessage;
    if (first.type !== "log") return first;
    const lines = [...first.lines];
    let size = lines.reduce((sum, { output }) => sum + output.length, 0);
    for (;;) {
      const next = this.#queue[0];
      if (next?.type !== "log" || next.job_id !== first.job_id || lines.length + next.lines.length > MAX_LINES) break;
      size += next.lines.reduce((sum, { output }) => sum + output.length, 0);
      if (size > MAX_BATCH_CHARS) break;
      lines.push(...next.lines);
      this.#queue.shift();
    }
    return { ...first, lines };
  }
}

/** Limits the output of one job. Sends the line that exceeds the limit, and drops all later lines, as the server does. */
export class OutputLimit {
  #remainingBytes = MAX_OUTPUT_BYTES;

  /** Returns the line if the limit is not yet reached, else undefined. */
  fitLine(line: Line): Line | undefined {
    if (this.#remainingBytes < 0) return undefined;
    const output = line.output.slice(0, MAX_OUTPUT_BYTES);
    // An empty line also counts.
    this.#remainingBytes -= Buffer.byteLength(output) + 1;
    return { ...line, output, stage: line.stage.slice(0, 4096) };
  }
}
