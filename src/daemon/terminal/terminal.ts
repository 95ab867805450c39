// One terminal of the workspace: a program on a pseudo-terminal, what it shows, and its viewers (facts/platform 5.6,
// rules TM-1 to TM-9). Its program waits while the slowest client does not read; a client that takes nothing for long is detached.
import type { Clock, Timer } from "#base/clock.ts";
import { within } from "#base/retry.ts";
import { type Duplex, JsonObjects, MAX_INPUT, terminalInput, Wakeup } from "#src/wire/index.ts";
import { TerminalClient } from "./client.ts";
import { KeptScreen } from "./kept-screen.ts";
import type { ProgramEvents, TerminalProgram, TerminalSize } from "./program.ts";

export type TerminalOptions = {
  /** Starts what runs on it. Throws when it cannot be started. */
  start(events: ProgramEvents): TerminalProgram;
  /** With which it starts. */
  size: TerminalSize;
  clock: Clock;
  /** Nobody has been attached for five minutes, or the program has ended: the terminal no longer exists. */
  gone(): void;
  /** Somebody has typed something. */
  typed?(): void;
};

/** With so much waiting for a client, programs wait; with less than half of it for each client they go on. */
const HELD_AT = 128 * 1024;
/** The same for what the kept screen has not shown yet. */
const SCREEN_HELD_AT = 2 * 1024 * 1024;
/** Where output cannot be held back, a client for whom more waits is detached. */
const CUT_AT = 8 * 1024 * 1024;
/** Bytes typed that the program has not read; more stay in the stream. */
const UNREAD_INPUT = 64 * 1024;
/** After so long without news a few bytes are written all the same, then after twice as long, up to a limit. */
const PROBE_AFTER_MS = 50;
const MAX_PROBE_AFTER_MS = 5_000;
const PROBE_BYTES = 256;
/** Without anyone attached. */
export const KEPT_MS = 300_000;
/** A client that takes nothing stands in the way of the others for so long; alone, only of the program. */
const STALLED_SHARED_MS = 20_000;
const STALLED_ALONE_MS = 120_000;
const LOOK_MS = 1_000;
/** Output that something in the background may still write once the program has ended. */
const LAST_WORDS_MS = 200;

export class Terminal {
  readonly #options: TerminalOptions;
  readonly #screen: KeptScreen;
  readonly #clients = new Set<TerminalClient>();
  /** What each client has room for. */
  readonly #sizes = new Map<TerminalClient, TerminalSize>();
  /** Of the program. */
  #size: TerminalSize;
  readonly #program: TerminalProgram;
  readonly #closed = Promise.withResolvers<void>();
  readonly #flushed = new Wakeup();
  #unflushed = 0;
  #held = false;
  #unwatched: Timer | undefined;
  #looker: Timer | undefined;
  #over = false;

  /** Throws when the program cannot be started. */
  constructor(options: TerminalOptions) {
    this.#options = options;
    this.#size = options.size;
    this.#screen = new KeptScreen(options.clock, options.size, () => this.#regulate());
    this.#program = options.start({
      output: (chunk) => this.#onOutput(chunk),
      drained: () => {
        this.#unflushed = 0;
        this.#flushed.ring();
      },
      closed: () => {
        this.#closed.resolve();
        this.#flushed.ring();
      },
    });
    void this.#live();
  }

  /** Shows the screen as it is, then what comes, and types what the stream says. Resolves when the client has gone. */
  async attach(stream: Duplex, size: TerminalSize): Promise<void> {
    const client = new TerminalClient(stream, this.#options.clock, () => this.#regulate());
    this.#unwatched?.cancel();
    this.#unwatched = undefined;
    this.#clients.add(client);
    this.#resize(client, size);
    if (this.#screen.written > 0) void client.begin(this.#screen.snapshot());
    if (this.#over) client.end();
    else this.#watchStalls();
    void this.#listen(stream, client);
    await client.gone;
    this.#clients.delete(client);
    this.#sizes.delete(client);
    this.#fit();
    this.#regulate();
    if (this.#clients.size === 0) this.#unwatch();
  }

  /** The folder of its foreground program; undefined where that cannot be known. */
  get folder(): string | undefined {
    return this.#program.folder?.();
  }

  /** Who looks at it. */
  get clients(): number {
    return this.#clients.size;
  }

  #resize(client: TerminalClient, size: TerminalSize): void {
    this.#sizes.set(client, size);
    this.#fit();
  }

  /** The program has as much room as all clients have: none sees a part of its screen. */
  #fit(): void {
    const sizes = [...this.#sizes.values()];
    if (sizes.length === 0 || this.#over) return;
    const height = Math.min(...sizes.map((size) => size.height));
    const width = Math.min(...sizes.map((size) => size.width));
    if (height === this.#size.height && width === this.#size.width) return;
    this.#size = { height, width };
    this.#screen.resize(this.#size);
    this.#program.resize(this.#size);
  }

  /** Ends the program and everything it has started on this terminal. Resolves when they no longer exist. */
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
          const { data, height, width } = terminalInput(object);
          if (height !== undefined && width !== undefined) this.#resize(client, { height, width });
          if (data === undefined) continue;
          this.#options.typed?.();
          await this.#type(data);
        }
      }
      // Anyone who ends its side goes; the terminal stays.
      client.detach("The client has gone.");
    } catch (error) {
      client.detach((error as Error).message);
    }
  }

  /**
   * Bun takes any amount and keeps what the program has not read; so the next client input waits for that. Once in thirty times Bun does not
   * report that everything was read: a few bytes more make it report.
   */
  async #type(data: string): Promise<void> {
    let bytes: Uint8Array = new TextEncoder().encode(data);
    let patience = PROBE_AFTER_MS;
    while (this.#unflushed > UNREAD_INPUT && !this.#over && bytes.byteLength > 0) {
      if (await within(this.#options.clock, patience, this.#flushed.wait())) continue;
      patience = Math.min(patience * 2, MAX_PROBE_AFTER_MS);
      this.#write(bytes.subarray(0, PROBE_BYTES));
      bytes = bytes.subarray(PROBE_BYTES);
    }
    if (!this.#over && bytes.byteLength > 0) this.#write(bytes);
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

  /** Holds the program back while a client is behind, and lets it go on when all have caught up. */
  #regulate(): void {
    let behind = this.#screen.waiting / SCREEN_HELD_AT;
    for (const client of [...this.#clients]) {
      if (client.waiting > CUT_AT) client.detach("The client is too slow.");
      behind = Math.max(behind, client.waiting / HELD_AT);
    }
    if (!this.#held && behind >= 1 && !this.#over) {
      this.#held = true;
      this.#program.gate?.hold();
    } else if (this.#held && behind < 0.5) this.#release();
  }

  #release(): void {
    if (!this.#held) return;
    this.#held = false;
    this.#program.gate?.release();
  }

  #watchStalls(): void {
    this.#looker ??= this.#options.clock.every(LOOK_MS, () => {
      const allowed = this.#clients.size > 1 ? STALLED_SHARED_MS : STALLED_ALONE_MS;
      for (const client of [...this.#clients]) {
        if (client.stalled_ms > allowed) client.detach("The client is too slow.");
      }
    });
  }

  #unwatch(): void {
    this.#looker?.cancel();
    this.#looker = undefined;
    if (this.#over) return;
    this.#unwatched = this.#options.clock.after(KEPT_MS, () => {
      this.#options.gone();
      void this.end();
    });
  }

  /** From the start of the program to its end, and to the last byte it has written. */
  async #live(): Promise<void> {
    const { clock, gone } = this.#options;
    await this.#program.exited;
    // What is still in the terminal is read first. Something in the background may keep it open: then silence is the end.
    for (let seen = -1; ; ) {
      const quiet = this.#screen.written === seen && !this.#held;
      seen = this.#screen.written;
      const silence = Promise.withResolvers<"silent">();
      const timer = clock.after(LAST_WORDS_MS, () => silence.resolve("silent"));
      const what = await Promise.race([this.#closed.promise, silence.promise]);
      timer.cancel();
      if (what !== "silent" || quiet) break;
    }
    this.#over = true;
    this.#flushed.ring();
    gone();
    this.#unwatched?.cancel();
    for (const client of this.#clients) client.end();
    this.#screen.dispose();
    this.#program.release();
  }
}
