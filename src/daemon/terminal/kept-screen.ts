// What a terminal shows, for anyone who attaches later (rule TM-4). Output is sent to clients first and reaches the emulator a moment later, in
// one go, so that keys are echoed as fast as without it. Short output waits as it came until someone attaches: most terminals need no emulator.
import type { Clock, Timer } from "#base/clock.ts";
import { log } from "#base/log.ts";
import type { Emulator } from "./emulator.ts";
import type { TerminalSize } from "./program.ts";
import { KEPT_LINES } from "./screen-limits.ts";

/** Bytes that are kept as they came. */
const PLAIN_BYTES = 64 * 1024;
/** Small pieces of output, such as echoed keys, are put together in blocks of this. */
const BLOCK = 4 * 1024;
/** Shown without a pause: about two milliseconds. */
const SLICE = 32 * 1024;
/** Output waits so long for the emulator, unless someone asks for the screen or so much waits. */
const LATER_MS = 50;
const SOON_BYTES = 1024 * 1024;
/** From so much on, text that has scrolled away again is left out. */
const SKIPPED_FROM = 128 * 1024;
/** Where output cannot be held back, the screen begins empty again rather than keep more. */
const MAX_WAITING = 8 * 1024 * 1024;

type Block = { readonly bytes: Uint8Array; used: number };
/** In the order in which it happened: output, a new size, someone who asks what is shown. */
type Event = Block | TerminalSize | ((emulator: Emulator | undefined) => void);

/** What is more than text in a color: other sequences, the characters that change the set, bells (one may end a title), controls of eight bits. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const MORE_THAN_TEXT = /[\x07\x0e\x0f]|\xc2[\x80-\x9f]|\x1b(?!\[[\d;:]*[mK])/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const COLOR = /\x1b\[[\d;:]*m/g;
/** So long a sequence may be that is under way when text begins. */
const UNDER_WAY = 256;
/** Colors that are put on top of each other where nothing has reset them. */
const MAX_COLORS = 4 * 1024;

/**
 * Leaves out of output what pushes itself off the screen and out of the lines above it: lines of text, as far as nothing but text and colors
 * follows. Returns the same bytes where there is no such thing.
 */
const withoutScrolledAway = (output: Buffer): Buffer => {
  const text = output.toString("latin1");
  const end = text.search(MORE_THAN_TEXT);
  const from = text.indexOf("\n", UNDER_WAY) + 1;
  let to = end < 0 ? text.length : end;
  // Text without returns begins where it began; text with them begins a line.
  for (let lines = 0; lines <= KEPT_LINES || (text[to - 1] !== "\r" && lines <= 2 * KEPT_LINES); lines++) {
    to = text.lastIndexOf("\n", to - 1);
    if (to < from) return output;
  }
  if (text[to - 1] === "\r") to -= 1;
  if (from === 0 || to <= from) return output;
  const left = text.slice(from, to);
  const reset = Math.max(left.lastIndexOf("\x1b[0m"), left.lastIndexOf("\x1b[m"), 0);
  const colors = left.slice(reset).match(COLOR)?.join("") ?? "";
  if (colors.length > MAX_COLORS) return output;
  return Buffer.concat([output.subarray(0, from), Buffer.from(colors), output.subarray(to)]);
};

const isBlock = (event: Event | undefined): event is Block => typeof event === "object" && "bytes" in event;

export class KeptScreen {
  readonly #clock: Clock;
  readonly #moved: () => void;
  readonly #size: TerminalSize;
  #events: Event[] = [];
  #waiting = 0;
  #written = 0;
  #emulator: Emulator | undefined;
  #running: Promise<void> | undefined;
  #later: Timer | undefined;
  /** All that had been written when something was last left out, or could not be. */
  #skipped_at = 0;
  #isOver = false;

  /** `moved` is called whenever a part of what waits was shown. */
  constructor(clock: Clock, size: TerminalSize, moved: () => void) {
    this.#clock = clock;
    this.#size = size;
    this.#moved = moved;
  }

  /** All bytes that were ever pushed. */
  get written(): number {
    return this.#written;
  }

  /** Bytes that wait for the emulator. */
  get waiting(): number {
    return this.#waiting;
  }

  push(chunk: Uint8Array): void {
    this.#written += chunk.byteLength;
    if (this.#isOver) return;
    this.#keep(chunk);
    this.#waiting += chunk.byteLength;
    if (this.#waiting > MAX_WAITING) this.#beginAgain();
    if (this.#waiting > SOON_BYTES) this.#run();
    else if (this.#emulator || this.#waiting > PLAIN_BYTES) this.#runLater();
  }

  resize(size: TerminalSize): void {
    if (this.#isOver) return;
    // Before the first output only the last one matters.
    if (this.#written === 0) this.#events.length = 0;
    this.#events.push(size);
    if (this.#emulator) this.#runLater();
  }

  /** What shows all that was pushed by now; what is pushed from now on comes after it. Never rejects. */
  async snapshot(): Promise<Uint8Array> {
    if (this.#written === 0 || this.#isOver) return new Uint8Array();
    const { promise, resolve } = Promise.withResolvers<string>();
    this.#events.push((emulator) => resolve(emulator?.serialize() ?? ""));
    this.#run();
    return new TextEncoder().encode(await promise);
  }

  /** Nobody will ask again. */
  dispose(): void {
    this.#isOver = true;
    this.#later?.cancel();
    void (this.#running ?? Promise.resolve()).then(() => {
      this.#emulator?.dispose();
      this.#emulator = undefined;
      this.#forget();
    });
  }

  #keep(chunk: Uint8Array): void {
    const last = this.#events.at(-1);
    if (isBlock(last) && last.used + chunk.byteLength <= last.bytes.byteLength) {
      last.bytes.set(chunk, last.used);
      last.used += chunk.byteLength;
      return;
    }
    if (chunk.byteLength >= BLOCK) {
      this.#events.push({ bytes: chunk, used: chunk.byteLength });
      return;
    }
    const bytes = new Uint8Array(BLOCK);
    bytes.set(chunk);
    this.#events.push({ bytes, used: chunk.byteLength });
  }

  /** Joins the waiting output, without text that would scroll away unseen. */
  #skip(): void {
    const other = this.#events.findIndex((event) => !isBlock(event));
    const blocks = this.#events.slice(0, other < 0 ? this.#events.length : other) as Block[];
    const output = Buffer.concat(blocks.map(({ bytes, used }) => bytes.subarray(0, used)));
    this.#skipped_at = this.#written;
    const kept = withoutScrolledAway(output);
    this.#waiting -= output.byteLength - kept.byteLength;
    this.#events.splice(0, blocks.length, { bytes: kept, used: kept.byteLength });
  }

  #forget(): void {
    for (const event of this.#events.splice(0)) if (typeof event === "function") event(undefined);
    this.#waiting = 0;
  }

  #beginAgain(): void {
    this.#events = this.#events.filter((event) => !isBlock(event));
    this.#waiting = 0;
    this.#emulator?.reset();
  }

  #runLater(): void {
    this.#later ??= this.#clock.after(LATER_MS, () => this.#run());
  }

  #run(): void {
    this.#later?.cancel();
    this.#later = undefined;
    this.#running ??= this.#show()
      .catch((error) => {
        log("daemon").error("the screen of a terminal cannot be kept: {error}", { error });
        this.#isOver = true;
        this.#forget();
      })
      .finally(() => {
        this.#running = undefined;
        // What came when the last of it was shown, before this.
        if (this.#isOver) this.#forget();
        else if (this.#events.length > 0) this.#run();
      });
  }

  /** One slice after the other; whatever else is due comes in between. */
  async #show(): Promise<void> {
    this.#emulator ??= new (await import("./emulator.ts")).Emulator(this.#size);
    const emulator = this.#emulator;
    for (;;) {
      if (this.#waiting > SKIPPED_FROM && this.#written - this.#skipped_at > SKIPPED_FROM) this.#skip();
      const event = this.#events.shift();
      if (event === undefined) return;
      if (typeof event === "function") event(emulator);
      else if (!isBlock(event)) emulator.resize(event);
      else {
        for (let at = 0; at < event.used; at += SLICE) {
          const slice = event.bytes.subarray(at, Math.min(at + SLICE, event.used));
          await emulator.write(slice);
          this.#waiting = Math.max(0, this.#waiting - slice.byteLength);
          this.#moved();
        }
      }
    }
  }
}
