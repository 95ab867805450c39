// Limits the size of tool results: two thirds for the beginning, one for the end, with a mark between them (facts/chats 5.3). Pure.
import type { ToolResult } from "./result.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** Returns at most `limit` bytes of UTF-8, not counting the mark. `lostBytes`: bytes that were already omitted from the middle. */
export const truncateMiddle = (text: string, limit: number, lostBytes = 0): { text: string; truncated: boolean } => {
  const bytes = encoder.encode(text);
  if (bytes.byteLength <= limit && lostBytes === 0) return { text, truncated: false };
  const head = findBoundaryBefore(bytes, Math.min(bytes.byteLength, Math.floor((limit * 2) / 3)));
  const tail = findBoundaryAfter(bytes, Math.max(head, bytes.byteLength - (limit - head)));
  const omittedBytes = tail - head + lostBytes;
  const mark = `\n[... ${omittedBytes} bytes left out ...]\n`;
  return {
    text: decoder.decode(bytes.subarray(0, head)) + mark + decoder.decode(bytes.subarray(tail)),
    truncated: true,
  };
};

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;

const findBoundaryBefore = (bytes: Uint8Array, at: number): number => {
  let index = at;
  while (index > 0 && isContinuation(bytes[index])) index -= 1;
  return index;
};

const findBoundaryAfter = (bytes: Uint8Array, at: number): number => {
  let index = at;
  while (isContinuation(bytes[index])) index += 1;
  return index;
};

/** Collects output of any length in bounded memory, for `truncateMiddle`. */
export class HeadTailBuffer {
  readonly #limit: number;
  #head = "";
  #tail = "";
  #lost = 0;

  /** `limit`: bytes of the final text. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  add(text: string): void {
    const remainingChars = Math.max(0, this.#limit - this.#head.length);
    this.#head += text.slice(0, remainingChars);
    this.#tail += text.slice(remainingChars);
    if (this.#tail.length <= 4 * this.#limit) return;
    const from = toCharacterStart(this.#tail, this.#tail.length - this.#limit);
    this.#lost += encoder.encode(this.#tail.slice(0, from)).byteLength;
    this.#tail = this.#tail.slice(from);
  }

  /** Records that `bytes` are missing at this point. */
  addLost(bytes: number): void {
    this.#lost += bytes;
  }

  get result(): { text: string; truncated: boolean } {
    return truncateMiddle(this.#head + this.#tail, this.#limit, this.#lost);
  }
}

/** Does not split a surrogate pair. */
const toCharacterStart = (text: string, at: number): number => {
  const code = text.charCodeAt(at);
  return code >= 0xdc00 && code <= 0xdfff ? at + 1 : at;
};

/** Returns the result with its longest texts shortened until its JSON has about `limit` bytes. */
export const truncateResult = (result: ToolResult, limit: number): ToolResult => {
  let shortened: Record<string, unknown> = { ...result };
  for (;;) {
    const size = encoder.encode(JSON.stringify(shortened)).byteLength;
    if (size <= limit) return shortened;
    const longest = Object.entries(shortened)
      .filter((entry): entry is [string, string] => typeof entry[1] === "string")
      .sort(([, a], [, b]) => b.length - a.length)[0];
    if (!longest || longest[1].length < 256) return toTruncatedJson(shortened, limit);
    const [name, text] = longest;
    // Quotes and line breaks take two bytes in JSON, so the excess is removed proportionally.
    const length = encoder.encode(text).byteLength;
    const share = encoder.encode(JSON.stringify(text)).byteLength / length;
    const target = Math.max(128, Math.floor(length - (size - limit) / share) - 128);
    shortened = { ...shortened, [name]: truncateMiddle(text, Math.min(target, length - 128)).text, truncated: true };
  }
};

/** Values other than texts cannot be shortened in the middle, so their JSON is. */
const toTruncatedJson = (result: ToolResult, limit: number): ToolResult => ({
  truncated: true,
  json: truncateMiddle(JSON.stringify(result), Math.floor(limit / 2)).text,
});
