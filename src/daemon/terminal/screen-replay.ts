// Keeps a terminal's screen for clients that attach later (rule TM-4). Output goes to clients first. The emulator gets it shortly
// afterwards in one batch, so that it does not delay echoed keys. Short output is stored unprocessed until a client attaches, so most
// terminals need no emulator.
import type { Clock, Timer } from "#base/clock.ts";
import { log } from "#base/log.ts";
import type { Emulator } from "./emulator.ts";
import type { TerminalSize } from "./program.ts";
import { MAX_STORED_LINES } from "./screen-limits.ts";

/** Maximum bytes stored unprocessed. */
const MAX_PLAIN_BYTES = 64 * 1024;
/** Small pieces of output, such as echoed keys, are collected in blocks of this size. */
const BLOCK_BYTES = 4 * 1024;
/** Bytes processed without a pause, which takes about two milliseconds. */
const SLICE_BYTES = 32 * 1024;
/** Delay before output goes to the emulator, unless a client requests the screen or too much is pending. */
const EMULATION_DELAY_MS = 50;
const MAX_DELAYED_BYTES = 1024 * 1024;
/** With more pending bytes than this, text that would scroll out of the scrollback is skipped. */
const SKIP_THRESHOLD_BYTES = 128 * 1024;
/** Maximum bytes of pending output. With more, which happens only if output cannot be paused, the screen is cleared. */
const MAX_PENDING_BYTES = 8 * 1024 * 1024;

type Block = { readonly bytes: Uint8Array; used: number };
/** Output, a resize, or a request for the screen, in order. */
type Event = Block | TerminalSize | ((emulator: Emulator | undefined) => void);

/** Matches anything but colored text: other sequences, character set changes, bells (which may end a title), and eight-bit controls. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: matches control characters
const NON_TEXT_SEQUENCE = /[\x07\x0e\x0f]|\xc2[\x80-\x9f]|\x1b(?!\[[\d;:]*[mK])/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: matches control characters
const COLOR_SEQUENCE = /\x1b\[[\d;:]*m/g;
/** Bytes kept at the start of the output, which may begin inside an escape sequence. */
const KEPT_PREFIX_BYTES = 256;
/** Maximum length of color sequences since the last reset. */
const MAX_COLOR_CHARS = 4 * 1024;

/**
 * Removes lines that would scroll out of the scrollback anyway. Only the part of the output that consists of text and colors is shortened.
 * Returns the same bytes if there is nothing to remove.
 */
const dropScrolledText = (output: Buffer): Buffer => {
  const text = output.toString("latin1");
  const end = text.search(NON_TEXT_SEQUENCE);
  const from = text.indexOf("\n", KEPT_PREFIX_BYTES) + 1;
  let to = end < 0 ? text.length : end;
  // Prefers to cut at a carriage return, after which text begins in the first column; a bare line feed keeps the column.
  for (let lines = 0; lines <= MAX_STORED_LINES || (text[to - 1] !== "\r" && lines <= 2 * MAX_STORED_LINES); lines++) {
    to = text.lastIndexOf("\n", to - 1);
    if (to < from) return output;
  }
  if (text[to - 1] === "\r") to -= 1;
  if (from === 0 || to <= from) return output;
  const removed = text.slice(from, to);
  const reset = Math.max(removed.lastIndexOf("\x1b[0m"), removed.lastIndexOf("\x1b[m"), 0);
  const colors = removed.slice(reset).match(COLOR_SEQUENCE)?.join("") ?? "";
  if (colors.length > MAX_COLOR_CHARS) return output;
  return Buffer.concat([output.subarray(0, from), Buffer.from(colors), output.subarray(to)]);
};

const isBlock = (event: Event | undefined): event is Block => typeof event === "object" && "bytes" in event;

export class ScreenBuffer {
  readonly #clock: Clock;
  readonly #onProgress: () => void;
  readonly #size: TerminalSize;
  #events: Event[] = [];
  #pendingBytes = 0;
  #written = 0;
  #emulator: Emulator | undefined;
  #running: Promise<void> | undefined;
  #delay: Timer | undefined;
  /** The value of `written` when text was last skipped. */
  #writtenAtSkip = 0;
  #isDisposed = false;

  /** `onProgress` is called whenever part of the pending output was processed. */
  constructor(clock: Clock, size: TerminalSize, onProgress: () => void) {
    this.#clock = clock;
    this.#size = size;
    this.#onProgress = onProgress;
  }

  /** Total number of bytes ever pushed. */
  get written(): number {
    return this.#written;
  }

  /** Number of bytes pending for the emulator. */
  get waiting(): number {
    return this.#pendingBytes;
  }

  push(chunk: Uint8Array): void {
    this.#written += chunk.byteLength;
    if (this.#isDisposed) return;
    this.#append(chunk);
    this.#pendingBytes += chunk.byteLength;
    if (this.#pendingBytes > MAX_PENDING_BYTES) this.#resetScreen();
    if (this.#pendingBytes > MAX_DELAYED_BYTES) this.#processEvents();
    else if (this.#emulator || this.#pendingBytes > MAX_PLAIN_BYTES) this.#scheduleProcessing();
  }

  resize(size: TerminalSize): void {
    if (this.#isDisposed) return;
    // Before the first output, only the last size matters.
    if (this.#written === 0) this.#events.length = 0;
    this.#events.push(size);
    if (this.#emulator) this.#scheduleProcessing();
  }

  /** Returns terminal output that draws the screen as of all output pushed so far. Never rejects. */
  async snapshot(): Promise<Uint8Array> {
    if (this.#written === 0 || this.#isDisposed) return new Uint8Array();
    const { promise, resolve } = Promise.withResolvers<string>();
    this.#events.push((emulator) => resolve(emulator?.serialize() ?? ""));
    this.#processEvents();
    return new TextEncoder().encode(await promise);
  }

  /** Releases the emulator; no more requests follow. */
  dispose(): void {
    this.#isDisposed = true;
    this.#delay?.cancel();
    void (this.#running ?? Promise.resolve()).then(() => {
      this.#emulator?.dispose();
      this.#emulator = undefined;
      this.#discardEvents();
    });
  }

  #append(chunk: Uint8Array): void {
    const last = this.#events.at(-1);
    if (isBlock(last) && last.used + chunk.byteLength <= last.bytes.byteLength) {
      last.bytes.set(chunk, last.used);
      last.used += chunk.byteLength;
      return;
    }
    if (chunk.byteLength >= BLOCK_BYTES) {
      this.#events.push({ bytes: chunk, used: chunk.byteLength });
      return;
    }
    const bytes = new Uint8Array(BLOCK_BYTES);
    bytes.set(chunk);
    this.#events.push({ bytes, used: chunk.byteLength });
  }

  /** Joins the pending output and removes text that would scroll away unseen. */
  #skipScrolledText(): void {
    const firstOther = this.#events.findIndex((event) => !isBlock(event));
    const blocks = this.#events.slice(0, firstOther < 0 ? this.#events.length : firstOther) as Block[];
    const output = Buffer.concat(blocks.map(({ bytes, used }) => bytes.subarray(0, used)));
    this.#writtenAtSkip = this.#written;
    const kept = dropScrolledText(output);
    this.#pendingBytes -= output.byteLength - kept.byteLength;
    this.#events.splice(0, blocks.length, { bytes: kept, used: kept.byteLength });
  }

  #discardEvents(): void {
    for (const event of this.#events.splice(0)) if (typeof event === "function") event(undefined);
    this.#pendingBytes = 0;
  }

  #resetScreen(): void {
    this.#events = this.#events.filter((event) => !isBlock(event));
    this.#pendingBytes = 0;
    this.#emulator?.reset();
  }

  #scheduleProcessing(): void {
    this.#delay ??= this.#clock.after(EMULATION_DELAY_MS, () => this.#processEvents());
  }

  #processEvents(): void {
    this.#delay?.cancel();
    this.#delay = undefined;
    this.#running ??= this.#emulateEvents()
      .catch((error) => {
        log("daemon").error("the screen of a terminal cannot be stored: {error}", { error });
        this.#isDisposed = true;
        this.#discardEvents();
      })
      .finally(() => {
        this.#running = undefined;
        // Handles events that arrived while the last one was being processed.
        if (this.#isDisposed) this.#discardEvents();
        else if (this.#events.length > 0) this.#processEvents();
      });
  }

  /** Processes output in slices, so that other work runs in between. */
  async #emulateEvents(): Promise<void> {
    this.#emulator ??= new (await import("./emulator.ts")).Emulator(this.#size);
    const emulator = this.#emulator;
    for (;;) {
      if (this.#pendingBytes > SKIP_THRESHOLD_BYTES && this.#written - this.#writtenAtSkip > SKIP_THRESHOLD_BYTES)
        this.#skipScrolledText();
      const event = this.#events.shift();
      if (event === undefined) return;
      if (typeof event === "function") event(emulator);
      else if (!isBlock(event)) emulator.resize(event);
      else {
        for (let offset = 0; offset < event.used; offset += SLICE_BYTES) {
          const slice = event.bytes.subarray(offset, Math.min(offset + SLICE_BYTES, event.used));
          await emulator.write(slice);
          this.#pendingBytes = Math.max(0, this.#pendingBytes - slice.byteLength);
          this.#onProgress();
        }
      }
    }
  }
}
