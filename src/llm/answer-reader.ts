// Reads a streamed response: the parts from the provider's package, and the text that bypassed it (bypass.ts), in the order in which the
// server sent them. Used by stream.ts.
import type { LanguageModelV4StreamPart } from "@ai-sdk/provider";
import type { Bypass } from "./bypass.ts";
import type { ModelEvent } from "./model.ts";

type Read = { readonly part: LanguageModelV4StreamPart | undefined } | { readonly error: unknown };
type Words = { readonly words: readonly ModelEvent[] };

/** One instance per response. */
export class AnswerReader {
  readonly #parts: { read(): Promise<{ readonly value?: LanguageModelV4StreamPart | undefined }> };
  readonly #bypass: Bypass | undefined;
  /** The package has been asked for its next part. */
  #isAsked = false;
  #read: Read | undefined;

  constructor(stream: ReadableStream<LanguageModelV4StreamPart>, bypass: Bypass | undefined) {
    this.#parts = stream.getReader();
    this.#bypass = bypass;
  }

  /** Throws the package's errors, and when no more data arrives. */
  async next(): Promise<LanguageModelV4StreamPart | Words> {
    const bypass = this.#bypass;
    for (;;) {
      // Bypassed text was sent before anything that the package may have read by now.
      const words = bypass?.drain() ?? [];
      if (words.length > 0) return { words };
      const read = this.#read;
      if (read) {
        this.#read = undefined;
        this.#isAsked = false;
        return partIn(read);
      }
      if (!this.#isAsked && !bypass?.isOpen) return partIn({ part: (await this.#parts.read()).value });
      this.#ask();
      await bypass?.news();
    }
  }

  #ask(): void {
    if (this.#isAsked) return;
    this.#isAsked = true;
    const done = (read: Read): void => {
      this.#read = read;
      this.#bypass?.wake();
    };
    this.#parts.read().then(
      ({ value }) => done({ part: value }),
      (error: unknown) => done({ error }),
    );
  }
}

const partIn = (read: Read): LanguageModelV4StreamPart => {
  if ("error" in read) throw read.error;
  if (read.part === undefined) throw new Error("The stream ended early.");
  return read.part;
};
