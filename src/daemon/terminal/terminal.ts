// One terminal of the workspace: a program on a pseudo-terminal, its screen, and its clients (facts/platform 5.6, rules TM-1 to TM-9). The
// program's output pauses while a client does not read; a client that reads nothing for a long time is detached.
import type { Clock, Timer } from "#base/clock.ts";
import { finishesWithin } from "#base/retry.ts";
import { type Duplex, JsonObjects, MAX_INPUT, parseTerminalInput, Wakeup } from "#src/wire/index.ts";
import { TerminalClient } from "./client.ts";
import type { ProgramEvents, TerminalProgram, TerminalSize } from "./program.ts";
import { ScreenBuffer } from "./screen-replay.ts";

export type TerminalOptions = {
  /** Starts the terminal's program. Throws if it cannot be started. */
  start(events: ProgramEvents): TerminalProgram;
  /** The initial size. */
  size: TerminalSize;
  clock: Clock;
  /** Called when the terminal no longer exists: no client was attached for five minutes, or the program has ended. */
  gone(): void;
  /** Called on input. */
  typed?(): void;
};

/** The program is paused when a client has this many pending bytes. It continues when every client has less than half of that. */
const HOLD_AT_BYTES = 128 * 1024;
/** The same limit for output that is not yet in the stored screen. */
const SCREEN_HOLD_AT_BYTES = 2 * 1024 * 1024;
/** If output cannot be paused, a client with more pending bytes is detached. */
const DISCONNECT_AT_BYTES = 8 * 1024 * 1024;
/** Bytes of input that the program has not read; more stays in the stream. */
const MAX_UNREAD_INPUT_BYTES = 64 * 1024;
/**
 * How long to wait for Bun's report that input was read, before a few bytes are written anyway. The time doubles with each attempt, up to a
 * limit.
 */
const PROBE_AFTER_MS = 50;
const MAX_PROBE_AFTER_MS = 5_000;
const PROBE_BYTES = 256;
/** How long a detached terminal is kept. */
export const DETACHED_TTL_MS = 300_000;
/** How long a client that reads nothing may block the others. A single client blocks only the program. */
const SHARED_STALL_TIMEOUT_MS = 20_000;
const SINGLE_STALL_TIMEOUT_MS = 120_000;
const POLL_INTERVAL_MS = 1_000;
/** How long to wait for output of background processes once the program has ended. */
const FINAL_OUTPUT_TIMEOUT_MS = 200;

export class Terminal {
  readonly #options: TerminalOptions;
  readonly #screen: ScreenBuffer;
  readonly #clients = new Set<TerminalClient>();
  /** The size of each client's window. */
  readonly #sizes = new Map<TerminalClient, TerminalSize>();
  /** The size of the program's terminal. */
  #size: TerminalSize;
  readonly #program: TerminalProgram;
  readonly #closed = Promise.withResolvers<void>();
  readonly #flushed = new Wakeup();
  #unflushedBytes = 0;
  #isPaused = false;
  #detachTimer: Timer | undefined;
  #stallTimer: Timer | undefined;
  #hasEnded = false;

  /** Throws if the program cannot be started. */
  constructor(options: TerminalOptions) {
    this.#options = options;
    this.#size = options.size;
    this.#screen = new ScreenBuffer(options.clock, options.size, () => this.#updateFlow());
    this.#program = options.start({
      output: (chunk) => this.#onOutput(chunk),
      drained: () => {
        this.#unflushedBytes = 0;
        this.#flushed.wake();
      },
      closed: () => {
        this.#closed.resolve();
        this.#flushed.wake();
      },
    });
    void this.#run();
  }

  /** Sends the current screen and later output to the client, and types the client's input. Resolves when the client has disconnected. */
  async attach(stream: Duplex, size: TerminalSize): Promise<void> {
    const client = new TerminalClient(stream, this.#options.clock, () => this.#updateFlow());
    this.#detachTimer?.cancel();
    this.#detachTimer = undefined;
    this.#clients.add(client);
    this.#setClientSize(client, size);
    if (this.#screen.written > 0) void client.begin(this.#screen.snapshot());
    if (this.#hasEnded) client.end();
    else this.#watchStalls();
    void this.#listen(stream, client);
    await client.gone;
    this.#clients.delete(client);
    this.#sizes.delete(client);
    this.#fitToClients();
    this.#updateFlow();
    if (this.#clients.size === 0) this.#detach();
  }

  /** The folder of its foreground program; undefined if unknown. */
  get folder(): string | undefined {
    return this.#program.folder?.();
  }

  /** Number of clients. */
  get clients(): number {
    return this.#clients.size;
  }

  #setClientSize(client: TerminalClient, size: TerminalSize): void {
    this.#sizes.set(client, size);
    this.#fitToClients();
  }

  /** Uses the largest size that fits all clients, so that each of them sees the whole screen. */
  #fitToClients(): void {
    const sizes = [...this.#sizes.values()];
    if (sizes.length === 0 || this.#hasEnded) return;
    const height = Math.min(...sizes.map((size) => size.height));
    const width = Math.min(...sizes.map((size) => size.width));
    if (height === this.#size.height && width === this.#size.width) return;
    this.#size = { height, width };
    this.#screen.resize(this.#size);
    this.#program.resize(this.#size);
  }

  /** Ends the program and everything it has started on this terminal. Resolves when they have ended. */
  async end(): Promise<void> {
    const ending = this.#program.end();
    this.#release();
    await ending;
    await this.#program.exited;
  }

  async #listen(stream: Duplex, client: TerminalClient): Promise<void> {
    const objects = new JsonObjects(MAX_INPUT);
    try {
      for await (const chunk of stream) {
        for (const object of objects.push(chunk)) {
          const { data, height, width } = parseTerminalInput(object);
          if (height !== undefined && width !== undefined) this.#setClientSize(client, { height, width });
          if (data === undefined) continue;
          this.#options.typed?.();
          await this.#writeInput(data);
        }
      }
      // A client that ends its side disconnects; the terminal stays.
      client.detach("The client has disconnected.");
    } catch (error) {
      client.detach((error as Error).message);
    }
  }

  /**
   * Writes input to the program. Bun buffers any amount of input that the program has not read, so this waits until little is left. About
   * one time in thirty, Bun does not report that everything was read; writing a few more bytes triggers the report.
   */
  async #writeInput(data: string): Promise<void> {
    let bytes: Uint8Array = new TextEncoder().encode(data);
    let probeAfter_ms = PROBE_AFTER_MS;
    while (this.#unflushedBytes > MAX_UNREAD_INPUT_BYTES && !this.#hasEnded && bytes.byteLength > 0) {
      if (await finishesWithin(this.#options.clock, probeAfter_ms, this.#flushed.wait())) continue;
      probeAfter_ms = Math.min(probeAfter_ms * 2, MAX_PROBE_AFTER_MS);
      this.#write(bytes.subarray(0, PROBE_BYTES));
      bytes = bytes.subarray(PROBE_BYTES);
    }
    if (!this.#hasEnded && bytes.byteLength > 0) this.#write(bytes);
  }

  #write(bytes: Uint8Array): void {
    this.#unflushedBytes += bytes.byteLength;
    this.#program.write(bytes);
  }

  #onOutput(chunk: Uint8Array): void {
    for (const client of this.#clients) client.send(chunk);
    this.#screen.push(chunk);
    this.#updateFlow();
  }

  /** Pauses the program while a client is behind, and resumes it when all have caught up. */
  #updateFlow(): void {
    let backlog = this.#screen.waiting / SCREEN_HOLD_AT_BYTES;
    for (const client of [...this.#clients]) {
      if (client.waiting > DISCONNECT_AT_BYTES) client.detach("The client is too slow.");
      backlog = Math.max(backlog, client.waiting / HOLD_AT_BYTES);
    }
    if (!this.#isPaused && backlog >= 1 && !this.#hasEnded) {
      this.#isPaused = true;
      this.#program.gate?.hold();
    } else if (this.#isPaused && backlog < 0.5) this.#release();
  }

  #release(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#program.gate?.release();
  }

  #watchStalls(): void {
    this.#stallTimer ??= this.#options.clock.every(POLL_INTERVAL_MS, () => {
      const timeout_ms = this.#clients.size > 1 ? SHARED_STALL_TIMEOUT_MS : SINGLE_STALL_TIMEOUT_MS;
      for (const client of [...this.#clients]) {
        if (client.stalled_ms > timeout_ms) client.detach("The client is too slow.");
      }
    });
  }

  #detach(): void {
    this.#stallTimer?.cancel();
    this.#stallTimer = undefined;
    if (this.#hasEnded) return;
    this.#detachTimer = this.#options.clock.after(DETACHED_TTL_MS, () => {
      this.#options.gone();
      void this.end();
    });
  }

  /** Waits for the program's last byte of output, and then ends the terminal. */
  async #run(): Promise<void> {
    const { clock, gone } = this.#options;
    await this.#program.exited;
    // Reads what is still in the terminal. A background process may keep it open, so silence counts as the end.
    for (let seen = -1; ; ) {
      const isQuiet = this.#screen.written === seen && !this.#isPaused;
      seen = this.#screen.written;
      const silence = Promise.withResolvers<"silent">();
      const timer = clock.after(FINAL_OUTPUT_TIMEOUT_MS, () => silence.resolve("silent"));
      const outcome = await Promise.race([this.#closed.promise, silence.promise]);
      timer.cancel();
      if (outcome !== "silent" || isQuiet) break;
    }
    this.#hasEnded = true;
    this.#flushed.wake();
    gone();
    this.#detachTimer?.cancel();
    for (const client of this.#clients) client.end();
    this.#screen.dispose();
    this.#program.release();
  }
}
