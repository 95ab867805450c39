// Keeps the last lines of this process's log in memory for administrators in the browser. Bounded in lines and bytes. Secrets and personal
// data are removed when a line is read (./redact.ts), not when it is written, because most lines are never read.
import { redact } from "./redact.ts";

export type RecentLine = {
  /** Incremented with each line since the process started. */
  readonly id: number;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly level: string;
  readonly area: string;
  readonly text: string;
};

const MAX_LINES = 2_000;
const MAX_CHARACTERS = 2 * 1024 * 1024;
const MAX_LINE_LENGTH = 4_096;

export class RecentLog {
  readonly #lines: RecentLine[] = [];
  /** Redacted forms of lines that were read. */
  readonly #redacted = new WeakMap<RecentLine, RecentLine>();
  readonly #listeners = new Set<() => void>();
  #characters = 0;
  #lastId = 0;

  add(line: Omit<RecentLine, "id">): void {
    this.#lastId += 1;
    const text = line.text.length > MAX_LINE_LENGTH ? `${line.text.slice(0, MAX_LINE_LENGTH)}…` : line.text;
    this.#lines.push({ ...line, id: this.#lastId, text });
    this.#characters += text.length;
    while (this.#lines.length > MAX_LINES || this.#characters > MAX_CHARACTERS) {
      this.#characters -= this.#lines.shift()?.text.length ?? 0;
    }
    for (const listener of this.#listeners) listener();
  }

  /** Returns lines with a higher ID without secrets, oldest first, limited to the newest `maxCount`. */
  listAfter(id: number, maxCount: number, isIncluded: (line: RecentLine) => boolean = () => true): RecentLine[] {
    const found = this.#lines.filter((line) => line.id > id && isIncluded(line)).slice(-maxCount);
    return found.map((line) => this.#redactLine(line));
  }

  #redactLine(line: RecentLine): RecentLine {
    const cached = this.#redacted.get(line);
    if (cached) return cached;
    const redacted = { ...line, text: redact(line.text) };
    this.#redacted.set(line, redacted);
    return redacted;
  }

  /** Returns the ID of the newest line; 0 before the first. */
  get last(): number {
    return this.#lastId;
  }

  /** Calls the listener when there are new lines. The listener must not log or throw. */
  onLines(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}

/** The recent log of this process. */
export const recentLog = new RecentLog();
