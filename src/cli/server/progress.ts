// Progress of a long operation, shown only on a terminal (rule CV-22).
import { formatSize } from "#base/format-size.ts";
import { Progress } from "../progress.ts";
import type { VerbInput } from "../verb.ts";

export class TerminalProgress implements Disposable {
  readonly #progress: Progress | undefined;

  constructor(input: VerbInput, doing: string) {
    this.#progress = input.isTerminal ? new Progress(input) : undefined;
    this.#progress?.setStatus(doing);
  }

  readonly report = (bytes: number): void => this.#progress?.setDetail(formatSize(bytes));

  [Symbol.dispose](): void {
    this.#progress?.[Symbol.dispose]();
  }
}
