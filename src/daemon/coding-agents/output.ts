// Buffers the output of a coding agent until the server has it: nothing is lost when a connection breaks, and a program that writes faster
// than the server reads has to wait (backpressure).
import { Wakeup } from "#src/wire/index.ts";
import { wholeCharacters } from "../whole-characters.ts";

const MAX_KEPT = 4 * 1024 * 1024;
const MAX_ANSWER = 256 * 1024;

export class PendingOutput {
  #kept = Buffer.alloc(0);
  /** The offset of the first buffered byte. */
  #from = 0;
  readonly #room = new Wakeup();
  /** Signals that more output is available or that the output has ended. */
  readonly news = new Wakeup();

  get written(): number {
    return this.#from + this.#kept.byteLength;
  }

  /** Buffers bytes, and resolves when more can be accepted. */
  async push(bytes: Uint8Array): Promise<void> {
    this.#kept = Buffer.concat([this.#kept, bytes]);
    this.news.ring();
    while (this.#kept.byteLength > MAX_KEPT) await this.#room.wait();
  }

  /** Returns the output from `after` on, in whole characters, and discards what came before. */
  take(after: number, isOver: boolean): { readonly output: string; readonly next: number } {
    const known = Math.min(Math.max(after, this.#from), this.written);
    this.#kept = this.#kept.subarray(known - this.#from);
    this.#from = known;
    this.#room.ring();
    const asked = this.#kept.subarray(0, MAX_ANSWER);
    const whole = isOver && asked.byteLength === this.#kept.byteLength ? asked : wholeCharacters(asked);
    return { output: new TextDecoder("utf-8", { ignoreBOM: true }).decode(whole), next: known + whole.byteLength };
  }
}
