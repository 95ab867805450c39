// A bounded queue of log lines of one source. Drops the oldest lines first and adds one line that says how many (rule DM-11). Pure; the
// shipper (logs.ts) decides when to take lines.
import type { LogLevel } from "#schema/log-level.ts";

/** `at` is in milliseconds since 1970. */
export type LogLine = { readonly at: number; readonly level: LogLevel; readonly output: string };

// Size of a line in addition to its text, so that empty lines count.
const LINE_OVERHEAD_BYTES = 32;
const COMPACT_AFTER_LINES = 1024;

export class LineQueue {
  readonly #maxBytes: number;
  #lines: { line: LogLine; bytes: number }[] = [];
  #head = 0;
  #bytes = 0;
  #droppedCount = 0;

  /** `maxBytes`: bytes of UTF-8, plus 32 per line. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Number of queued lines. */
  get length(): number {
    return this.#lines.length - this.#head;
  }

  /** Size of the queued lines. */
  get bytes(): number {
    return this.#bytes;
  }

  push(line: LogLine): void {
    const bytes = Buffer.byteLength(line.output) + LINE_OVERHEAD_BYTES;
    this.#lines.push({ line, bytes });
    this.#bytes += bytes;
    while (this.#bytes > this.#maxBytes && this.length > 1) {
      this.#removeOldest();
      this.#droppedCount += 1;
    }
  }

  /** Counts lines as dropped that were taken but could not be delivered. */
  countDropped(count: number): void {
    this.#droppedCount += count;
  }

  /** Returns the oldest lines, up to `maxLines` lines and `maxBytes` bytes, but at least one. A notice about dropped lines comes first. */
  take(maxLines: number, maxBytes: number): LogLine[] {
    const taken: LogLine[] = [];
    let size = 0;
    if (this.#droppedCount > 0) {
      taken.push(this.#createNotice());
      this.#droppedCount = 0;
    }
    while (taken.length < maxLines && this.length > 0) {
      const next = this.#lines[this.#head]!;
      if (size > 0 && size + next.bytes > maxBytes) break;
      size += next.bytes;
      taken.push(next.line);
      this.#removeOldest();
    }
    return taken;
  }

  clear(): void {
    this.#lines = [];
    this.#head = 0;
    this.#bytes = 0;
    this.#droppedCount = 0;
  }

  #createNotice(): LogLine {
    const count = this.#droppedCount;
    const at = this.#lines[this.#head]?.line.at ?? 0;
    const output = `[slipway: ${count} ${count === 1 ? "line was" : "lines were"} dropped here, the server could not be reached]`;
    return { at, level: "warn", output };
  }

  #removeOldest(): void {
    this.#bytes -= this.#lines[this.#head]!.bytes;
    this.#head += 1;
    if (this.#head < COMPACT_AFTER_LINES || this.#head * 2 < this.#lines.length) return;
    this.#lines = this.#lines.slice(this.#head);
    this.#head = 0;
  }
}
