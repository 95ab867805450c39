// Handles chunks of a stream that cannot be parsed. A chunk is skipped if only text can have been lost. If part of a call could be mistaken
// for a complete one, the request is retried (rules MO-13, TO-7). Used by stream.ts.
import { JSONParseError, type LanguageModelV4StreamPart, TypeValidationError } from "@ai-sdk/provider";
import { ModelError } from "./model.ts";

/** More broken chunks than this are not an accident. */
const MAX_BROKEN_CHUNKS = 5;

/** One instance per response. */
export class BrokenChunks {
  #skippedCount = 0;
  readonly #openCalls = new Set<string>();
  #callCount = 0;

  /**
   * True if the part must be skipped. Throws an error that the part reports in a nonstandard form, and a `ModelError` if too much is lost.
   */
  isOne(part: LanguageModelV4StreamPart): boolean {
    if (part.type === "tool-input-start") this.#openCalls.add(part.id);
    if (part.type === "tool-call") {
      this.#openCalls.delete(part.toolCallId);
      this.#callCount += 1;
    }
    if (
      part.type === "finish" &&
      this.#skippedCount > 0 &&
      part.finishReason.unified === "tool-calls" &&
      this.#callCount === 0
    ) {
      throw toLostError("The calls of the answer could not be read.");
    }
    if (part.type !== "error") return false;
    const { error } = part;
    if (TypeValidationError.isInstance(error)) {
      const reportedError = findError(error.value);
      if (reportedError !== undefined) throw reportedError;
    } else if (!JSONParseError.isInstance(error)) return false;
    this.#skippedCount += 1;
    if (this.#openCalls.size > 0) throw toLostError("A part of a call could not be read.");
    if (this.#skippedCount > MAX_BROKEN_CHUNKS) throw toLostError("Many parts of the answer could not be read.");
    return true;
  }
}

const toLostError = (message: string): ModelError => new ModelError("timeout", message, { reason: "broke_off" });

/** Returns an error that a server has sent in the middle of a stream, in one of various forms; undefined if the value is not an error. */
const findError = (value: unknown): unknown => {
  if (typeof value !== "object" || value === null) return undefined;
  const { error, object, message, choices } = value as Record<string, unknown>;
  if (error !== undefined && error !== null) return error;
  return object === "error" || (typeof message === "string" && choices === undefined) ? value : undefined;
};
