// Shows progress while a command waits: on a terminal a spinner with the log above it, in a pipe plain lines. Everything goes to standard
// error, so that standard output contains only the result (rule CV-5).
import type { Timer } from "#base/clock.ts";
import { toPlainLine } from "./text.ts";
import type { VerbInput } from "./verb.ts";

const FRAMES = [..."⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"];
const FRAME_INTERVAL_MS = 100;

type Input = Pick<VerbInput, "printError" | "isTerminal" | "clock" | "env" | "streams">;

export class Progress implements Disposable {
  readonly #input: Input;
  readonly #isAnimated: boolean;
  readonly #startedAt: number;
  #timer: Timer | undefined;
  #text = "";
  #detail = "";
  #frame = 0;
  #stage = "";

  constructor(input: Input) {
    this.#input = input;
    this.#isAnimated = input.isTerminal && input.env.TERM !== "dumb";
    this.#startedAt = input.clock.monotonic();
  }

  /** Sets what the command waits for, in a few words. */
  setStatus(text: string): void {
    if (text === this.#text) return;
    this.#text = text;
    this.#detail = "";
    if (!this.#isAnimated) this.#input.printError(`${text}\n`);
    else {
      this.#timer ??= this.#input.clock.every(FRAME_INTERVAL_MS, () => this.#draw());
      this.#draw();
    }
  }

  /** Sets the progress; shown only on a terminal, with the next update. */
  setDetail(detail: string): void {
    this.#detail = detail;
  }

  /** Prints a log line under its stage. */
  printLine(text: string, stage = ""): void {
    const head = stage !== "" && stage !== this.#stage ? `== ${toPlainLine(stage)}\n` : "";
    this.#stage = stage;
    this.#printAbove(`${head}${toPlainLine(text)}\n`);
  }

  /** Removes the spinner. */
  [Symbol.dispose](): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#isAnimated && this.#text !== "") this.#input.printError("\r\u001b[K");
    this.#text = "";
  }

  #printAbove(text: string): void {
    this.#input.printError(this.#timer ? `\r\u001b[K${text}` : text);
    if (this.#timer) this.#draw();
  }

  #draw(): void {
    const seconds = Math.floor((this.#input.clock.monotonic() - this.#startedAt) / 1000);
    const width = (this.#input.streams?.size()?.width ?? 80) - 1;
    const text = `${FRAMES[this.#frame++ % FRAMES.length]} ${this.#text}${this.#detail && `, ${this.#detail}`}${seconds > 0 ? ` (${seconds} s)` : ""}`;
    this.#input.printError(`\r\u001b[K${Bun.sliceAnsi ? Bun.sliceAnsi(text, 0, width) : text.slice(0, width)}`);
  }
}
