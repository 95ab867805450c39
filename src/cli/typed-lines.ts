// Reads lines that the user types while the program continues, so that a question can be withdrawn and replaced. Reading begins with the
// first question. Input that was typed before a question was shown is discarded, because it does not answer the question.
import type { Clock } from "#base/clock.ts";
import { pause } from "#base/retry.ts";
import type { Streams } from "./streams.ts";

/** Input that has been read from the terminal but not delivered yet arrives within this time. */
const DELIVERY_DELAY_MS = 30;

export class TypedLines {
  readonly #streams: Streams;
  readonly #clock: Clock;
  readonly #show: (text: string) => void;
  readonly #decoder = new TextDecoder();
  #typed = "";
  #isReading = false;
  #isEnded = false;
  #wake: () => void = () => {};

  constructor(streams: Streams, clock: Clock, show: (text: string) => void) {
    this.#streams = streams;
    this.#clock = clock;
    this.#show = show;
  }

  /** Returns the next line; undefined at the end of input, or as soon as the question is withdrawn. */
  async readLine(question: string, withdrawn: AbortSignal): Promise<string | undefined> {
    this.#streams.forget();
    // Reading must not begin earlier, because the system stops a background program that reads from a terminal.
    if (!this.#isReading) void this.#read();
    else await pause(this.#clock, DELIVERY_DELAY_MS);
    if (withdrawn.aborted) return undefined;
    this.#typed = "";
    this.#show(question);
    const wake = (): void => this.#wake();
    withdrawn.addEventListener("abort", wake);
    try {
      while (!withdrawn.aborted) {
        const end = this.#typed.indexOf("\n");
        if (end >= 0) return this.#takeLine(end);
        if (this.#isEnded) return undefined;
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
      return undefined;
    } finally {
      withdrawn.removeEventListener("abort", wake);
    }
  }

  #takeLine(end: number): string {
    const line = this.#typed.slice(0, end);
    this.#typed = this.#typed.slice(end + 1);
    return line.trim();
  }

  async #read(): Promise<void> {
    this.#isReading = true;
    try {
      for await (const chunk of this.#streams.input()) {
        this.#typed += this.#decoder.decode(chunk, { stream: true });
        this.#wake();
      }
    } catch {
      // The terminal no longer exists.
    }
    this.#isEnded = true;
    this.#wake();
  }
}
