// Log lines of one source that wait to be sent: bounded, the oldest are dropped first, and one line says how many (rule DM-11).
// Pure; the shipper (logs.ts) decides when to take.
import type { LogLevel } from "#schema/log-level.ts";

/** `at` is in milliseconds since 1970. */
export type LogLine = { readonly at: number; readonly level: LogLevel; readonly output: string };

// What a line costs alongside its text, so that empty lines are not free.
const OVERHEAD = 32;
const COMPACT_AT = 1024;

export class LineQueue {
  readonly #bound: number;
  #lines: { line: LogLine; bytes: number }[] = [];
  #head = 0;
  #bytes = 0;
  #dropped = 0;

  /** `bound` in bytes of UTF-8, with 32 for each line. */
  constructor(bound: number) {
    this.#bound = bound;
  }

  /** Lines that wait. */
  get length(): number {
    return this.#lines.length - this.#head;
  }

  /** Bytes that wait. */
  get bytes(): number {
    return this.#bytes;
  }

  push(line: LogLine): void {
    const bytes = Buffer.byteLength(line.output) + OVERHEAD;
    this.#lines.push({ line, bytes });
    this.#bytes += bytes;
    while (this.#bytes > this.#bound && this.length > 1) {
      this.#shift();
      this.#dropped += 1;
    }
  }

  /** Counts lines as dropped that were taken and then could not be delivered. */
  noteDropped(count: number): void {
    this.#dropped += count;
  }

  /** The oldest lines, at most `lines` of them and `bytes` in all, but at least one. What was dropped is told first. */
  take(lines: number, bytes: number): LogLine[] {
    const taken: LogLine[] = [];
    let size = 0;
    if (this.#dropped > 0) {
      taken.push(this.#notice());
      this.#dropped = 0;
    }
    while (taken.length < lines && this.length > 0) {
      const next = this.#lines[this.#head]!;
      if (size > 0 && size + next.bytes > bytes) break;
      size += next.bytes;
      taken.push(next.line);
      this.#shift();
    }
    return taken;
  }

  clear(): void {
    this.#lines = [];
    this.#head = 0;
    this.#bytes = 0;
    this.#dropped = 0;
  }

  #notice(): LogLine {
    const count = this.#dropped;
    const at = this.#lines[this.#head]?.line.at ?? 0;
    const output = `[slipway: ${count} ${count === 1 ? "line was" : "lines were"} dropped here, the server could not be reached]`;
    return { at, level: "warn", output };
  }

  #shift(): void {
    this.#bytes -= this.#lines[this.#head]!.bytes;
    this.#head += 1;
    if (this.#head < COMPACT_AT || this.#head * 2 < this.#lines.length) return;
    this.#lines = this.#lines.slice(this.#head);
    this.#head = 0;
  }
}
