// Reads a streamed response: the parts from the provider's package, and the text that bypassed it (bypass.ts), in the order in which the
// server sent them. Used by stream.ts.
import type { LanguageModelV4StreamPart } from "@ai-sdk/provider";
import type { Bypass } from "./bypass.ts";
import type { ModelEvent } from "./model.ts";

type ReadResult = { readonly part: LanguageModelV4StreamPart | undefined } | { readonly error: unknown };
type WordEvents = { readonly words: readonly ModelEvent[] };

/** One instance per response. */
export class AnswerReader {
  readonly #parts: { read(): Promise<{ readonly value?: LanguageModelV4StreamPart | undefined }> };
  readonly #bypass: Bypass | undefined;
  /** The package has been asked for its next part. */
  #isRequested = false;
  #pendingRead: ReadResult | undefined;

  constructor(stream: ReadableStream<LanguageModelV4StreamPart>, bypass: Bypass | undefined) {
    this.#parts = stream.getReader();
    this.#bypass = bypass;
  }

  /** Returns the next part or text. Throws the package's errors, and an error if the stream ends early. */
  async next(): Promise<LanguageModelV4StreamPart | WordEvents> {
    const bypass = this.#bypass;
    for (;;) {
      // Bypassed text was sent before anything that the package may have read by now.
      const textEvents = bypass?.drain() ?? [];
      if (textEvents.length > 0) return { words: textEvents };
      const read = this.#pendingRead;
      if (read) {
        this.#pendingRead = undefined;
        this.#isRequested = false;
        return requirePart(read);
      }
      if (!this.#isRequested && !bypass?.isOpen) return requirePart({ part: (await this.#parts.read()).value });
      this.#requestPart();
      await bypass?.waitForEvents();
    }
  }

  #requestPart(): void {
    if (this.#isRequested) return;
    this.#isRequested = true;
    const onRead = (read: ReadResult): void => {
      this.#pendingRead = read;
      this.#bypass?.wake();
    };
    this.#parts.read().then(
      ({ value }) => onRead({ part: value }),
      (error: unknown) => onRead({ error }),
    );
  }
}

const requirePart = (read: ReadResult): LanguageModelV4StreamPart => {
  if ("error" in read) throw read.error;
  if (read.part === undefined) throw new Error("The stream ended early.");
  return read.part;
};
