// Prompts on a terminal for a line, or a secret that is not shown. Refuses without a terminal.
import { VerbFailure } from "./failure.ts";
import type { Streams } from "./streams.ts";

/** The user pressed Ctrl-C or Ctrl-D instead of answering. */
export class PromptDeclined extends VerbFailure {}

const RETURN_KEYS = ["\r", "\n"];
const CTRL_C = "\u0003";
const CTRL_D = "\u0004";
const ERASE_KEYS = ["\u007f", "\b"];
const CTRL_U = "\u0015";

export class Prompter implements AsyncDisposable {
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
  async promptLine(question: string): Promise<string> {
    this.#show(question);
    while (!this.#typed.includes("\n")) await this.#readMore();
    const lineEnd = this.#typed.indexOf("\n");
    const line = this.#typed.slice(0, lineEnd);
    this.#typed = this.#typed.slice(lineEnd + 1);
    return line.trim();
  }

  /** Reads one line without echo. */
  async promptSecret(question: string): Promise<string> {
    using _raw = this.#streams.raw();
    this.#show(question);
    let secret = "";
    for (;;) {
      if (this.#typed === "") await this.#readMore();
      const [key = ""] = this.#typed;
      this.#typed = this.#typed.slice(key.length);
      if (RETURN_KEYS.includes(key)) break;
      if (key === CTRL_C || (key === CTRL_D && secret === "")) {
        this.#show("\r\n");
        throw new PromptDeclined("stopped");
      }
      if (ERASE_KEYS.includes(key)) secret = secret.slice(0, -1);
      else if (key === CTRL_U) secret = "";
      else if (key >= " ") secret += key;
    }
    this.#show("\r\n");
    return secret;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#keys.return?.();
  }

  async #readMore(): Promise<void> {
    const { value, done } = await this.#keys.next();
    if (done) throw new PromptDeclined("nothing was typed");
    this.#typed += this.#decoder.decode(value, { stream: true });
  }
}

/** Reads all of standard input as text, without the final newline. */
export const readAllInput = async (streams: Streams): Promise<string> => {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of streams.input()) text += decoder.decode(chunk, { stream: true });
  return (text + decoder.decode()).replace(/\r?\n$/, "");
};
