// One terminal of the workspace: a program on a pseudo-terminal, its screen, and its clients (facts/platform 5.6, rules TM-1 to TM-9). The
// program waits while the slowest client does not read; a client that reads nothing for long is detached.
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

/** Pending bytes of a client at which programs are paused; they continue when every client has less than half of it. */
const HOLD_AT_BYTES = 128 * 1024;
/** The same limit for output that the stored screen has not processed. */
const SCREEN_HOLD_AT_BYTES = 2 * 1024 * 1024;
/** If output cannot be paused, a client with more pending bytes is detached. */
const DISCONNECT_AT_BYTES = 8 * 1024 * 1024;
/** Bytes of input that the program has not read; more stays in the stream. */
const MAX_UNREAD_INPUT = 64 * 1024;
/** After this long without a report, a few bytes are written anyway; the interval then doubles up to a limit. */
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
  #unflushed = 0;
  #held = false;
  #detachTimer: Timer | undefined;
  #looker: Timer | undefined;
  #isOver = false;

  /** Throws if the program cannot be started. */
  constructor(options: TerminalOptions) {
    this.#options = options;
    this.#size = options.size;
    this.#screen = new ScreenBuffer(options.clock, options.size, () => this.#regulate());
    this.#program = options.start({
      output: (chunk) => this.#onOutput(chunk),
      drained: () => {
        this.#unflushed = 0;
        this.#flushed.wake();
      },
      closed: () => {
        this.#closed.resolve();
        this.#flushed.wake();
      },
    });
    void this.#listActiveClients();
  }

  /** Sends the current screen and later output, and types what the stream sends. Resolves when the client has disconnected. */
  async attach(stream: Duplex, size: TerminalSize): Promise<void> {
    const client = new TerminalClient(stream, this.#options.clock, () => this.#regulate());
    this.#detachTimer?.cancel();
    this.#detachTimer = undefined;
    this.#clients.add(client);
    this.#setClientSize(client, size);
    if (this.#screen.written > 0) void client.begin(this.#screen.snapshot());
    if (this.#isOver) client.end();
    else this.#watchStalls();
    void this.#listen(stream, client);
    await client.gone;
    this.#clients.delete(client);
    this.#sizes.delete(client);
    this.#fitToClients();
    this.#regulate();
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

  /** Uses the largest size that fits all clients, so that none sees only part of the screen. */
  #fitToClients(): void {
    const sizes = [...this.#sizes.values()];
    if (sizes.length === 0 || this.#isOver) return;
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
      client.detach("The client has gone.");
    } catch (error) {
      client.detach((error as Error).message);
    }
  }

  /**
   * Bun accepts any amount of input and buffers what the program has not read, so further client input waits until it is read. About one
   * time in thirty Bun fails to report that everything was read; writing a few more bytes triggers the report.
   */
  async #writeInput(data: string): Promise<void> {
    let bytes: Uint8Array = new TextEncoder().encode(data);
    let patience = PROBE_AFTER_MS;
    while (this.#unflushed > MAX_UNREAD_INPUT && !this.#isOver && bytes.byteLength > 0) {
      if (await finishesWithin(this.#options.clock, patience, this.#flushed.wait())) continue;
      patience = Math.min(patience * 2, MAX_PROBE_AFTER_MS);
      this.#write(bytes.subarray(0, PROBE_BYTES));
      bytes = bytes.subarray(PROBE_BYTES);
    }
    if (!this.#isOver && bytes.byteLength > 0) this.#write(bytes);
  }

  #write(bytes: Uint8Array): void {
    this.#unflushed += bytes.byteLength;
    this.#program.write(bytes);
  }

  #onOutput(chunk: Uint8Array): void {
    for (const client of this.#clients) client.send(chunk);
    this.#screen.push(chunk);
    this.#regulate();
  }

  /** Pauses the program while a client is behind, and resumes it when all have caught up. */
  #regulate(): void {
    let backlog = this.#screen.waiting / SCREEN_HOLD_AT_BYTES;
    for (const client of [...this.#clients]) {
      if (client.waiting > DISCONNECT_AT_BYTES) client.detach("The client is too slow.");
      backlog = Math.max(backlog, client.waiting / HOLD_AT_BYTES);
    }
    if (!this.#held && backlog >= 1 && !this.#isOver) {
      this.#held = true;
      this.#program.gate?.hold();
    } else if (this.#held && backlog < 0.5) this.#release();
  }

  #release(): void {
    if (!this.#held) return;
    this.#held = false;
    this.#program.gate?.release();
  }

  #watchStalls(): void {
    this.#looker ??= this.#options.clock.every(POLL_INTERVAL_MS, () => {
      const allowed = this.#clients.size > 1 ? SHARED_STALL_TIMEOUT_MS : SINGLE_STALL_TIMEOUT_MS;
      for (const client of [...this.#clients]) {
        if (client.stalled_ms > allowed) client.detach("The client is too slow.");
      }
    });
  }

  #detach(): void {
    this.#looker?.cancel();
    this.#looker = undefined;
    if (this.#isOver) return;
    this.#detachTimer = this.#options.clock.after(DETACHED_TTL_MS, () => {
      this.#options.gone();
      void this.end();
    });
  }

  /** Runs from the program's start to its last byte of output. */
  async #listActiveClients(): Promise<void> {
    const { clock, gone } = this.#options;
    await this.#program.exited;
    // Reads what is still in the terminal. A background process may keep it open, so silence counts as the end.
    for (let seen = -1; ; ) {
      const quiet = this.#screen.written === seen && !this.#held;
      seen = this.#screen.written;
      const silence = Promise.withResolvers<"silent">();
      const timer = clock.after(FINAL_OUTPUT_TIMEOUT_MS, () => silence.resolve("silent"));
      const what = await Promise.race([this.#closed.promise, silence.promise]);
      timer.cancel();
      if (what !== "silent" || quiet) break;
    }
    this.#isOver = true;
    this.#flushed.wake();
    gone();
    this.#detachTimer?.cancel();
    for (const client of this.#clients) client.end();
    this.#screen.dispose();
    this.#program.release();
  }
}
