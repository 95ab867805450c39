// Prompts on a terminal for a line, or a secret that is not shown. Refuses without a terminal.
import { VerbFailure } from "./failure.ts";
import type { Streams } from "./streams.ts";

/** The user pressed Ctrl-C or Ctrl-D instead of answering. */
export class Declined extends VerbFailure {}

const RETURN = ["\r", "\n"];
const INTERRUPT = "\u0003";
const END = "\u0004";
const ERASE = ["\u007f", "\b"];
const KILL = "\u0015";

export class Asker implements AsyncDisposable {
  readonly #streams: Streams;
  readonly #show: (text: string) => void;
  readonly #keys: AsyncIterator<Uint8Array>;
  readonly #decoder = new TextDecoder();
  #typed = "";

  /** `show` writes the questions, usually to standard error. */
  constructor(streams: Streams, show: (text: string) => void) {
    this.#streams = streams;
    this.#show = show;
    this.#keys = streams.input()[Symbol.asyncIterator]();
  }

  /** Reads one line, with the terminal's line editing. */
  async line(question: string): Promise<string> {
    this.#show(question);
    while (!this.#typed.includes("\n")) await this.#more();
    const at = this.#typed.indexOf("\n");
    const line = this.#typed.slice(0, at);
    this.#typed = this.#typed.slice(at + 1);
    return line.trim();
  }

  /** Reads one line without echo. */
  async secret(question: string): Promise<string> {
    using _raw = this.#streams.raw();
    this.#show(question);
    let secret = "";
    for (;;) {
      if (this.#typed === "") await this.#more();
      const [key = ""] = this.#typed;
      this.#typed = this.#typed.slice(key.length);
      if (RETURN.includes(key)) break;
      if (key === INTERRUPT || (key === END && secret === "")) {
        this.#show("\r\n");
        throw new Declined("stopped");
      }
      if (ERASE.includes(key)) secret = secret.slice(0, -1);
      else if (key === KILL) secret = "";
      else if (key >= " ") secret += key;
    }
    this.#show("\r\n");
    return secret;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#keys.return?.();
  }

  async #more(): Promise<void> {
    const { value, done } = await this.#keys.next();
    if (done) throw new Declined("nothing was typed");
    this.#typed += this.#decoder.decode(value, { stream: true });
  }
}

/** Reads all of standard input as text, without the final newline. */
export const allInput = async (streams: Streams): Promise<string> => {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of streams.input()) text += decoder.decode(chunk, { stream: true });
  return (text + decoder.decode()).replace(/\r?\n$/, "");
};
