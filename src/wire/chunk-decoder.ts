// Decodes the chunked encoding of an HTTP body. Joins the chunks of one read in one buffer, so that chunks of one byte cost little more
// than large ones. Pure.
import { WireError } from "./wire-error.ts";

const MAX_SIZE_LINE_LENGTH = 1024;
const MAX_TRAILER_BYTES = 64 * 1024;
const NEWLINE = 10;
const SIZE_LINE = /^([0-9a-f]{1,12})(?:[ \t]*;.*)?\r$/i;

/** The part of the body that the next bytes belong to; `data`: bytes of a chunk, `end`: the line break after them. */
type State = "size" | "data" | "end" | "trailers" | "over";

export class ChunkDecoder {
  #state: State = "size";
  /** Bytes of the current chunk that have not arrived yet. */
  #remaining = 0;
  /** The part of the current line that has arrived. */
  #line = "";
  #trailerBytes = 0;

  /** Whether the last chunk and its trailers have arrived. */
  get isOver(): boolean {
    return this.#state === "over";
  }

  /** Returns the payload in these bytes, and the bytes after the end of the body. Throws WireError. */
  push(bytes: Uint8Array): { readonly payload: Uint8Array; readonly rest: Uint8Array } {
    const payload = new Payload(bytes);
    let at = 0;
    while (at < bytes.byteLength && this.#state !== "over") {
      if (this.#state === "data") {
        const end = Math.min(bytes.byteLength, at + this.#remaining);
        payload.add(at, end);
        this.#remaining -= end - at;
        at = end;
        if (this.#remaining === 0) this.#state = "end";
        continue;
      }
      const newline = bytes.indexOf(NEWLINE, at);
      const end = newline === -1 ? bytes.byteLength : newline;
      this.#addToLine(bytes, at, end);
      at = end + 1;
      if (newline !== -1) this.#endLine();
    }
    return { payload: payload.bytes, rest: bytes.subarray(at) };
  }

  #addToLine(bytes: Uint8Array, from: number, to: number): void {
    const limit = this.#state === "trailers" ? MAX_TRAILER_BYTES - this.#trailerBytes : MAX_SIZE_LINE_LENGTH;
    if (this.#line.length + to - from > limit + 1)
      throw new WireError("too_large", "A chunk size or the trailers are too long.");
    this.#line += Buffer.from(bytes.buffer, bytes.byteOffset + from, to - from).toString("latin1");
  }

  #endLine(): void {
    const line = this.#line;
    this.#line = "";
    if (this.#state === "end") {
      if (line !== "\r") throw malformedError();
      this.#state = "size";
      return;
    }
    if (this.#state === "trailers") {
      this.#trailerBytes += line.length + 1;
      if (line === "\r") this.#state = "over";
      return;
    }
    const [, size] = SIZE_LINE.exec(line) ?? [];
    if (size === undefined) throw malformedError();
    this.#remaining = Number.parseInt(size, 16);
    this.#state = this.#remaining === 0 ? "trailers" : "data";
  }
}

const malformedError = (): WireError => new WireError("protocol", "The response's chunked encoding is malformed.");

/** Joins parts of a buffer; a single part is not copied. */
class Payload {
  readonly #source: Uint8Array;
  #first: Uint8Array | undefined;
  #joined: Uint8Array | undefined;
  #length = 0;

  constructor(source: Uint8Array) {
    this.#source = source;
  }

  get bytes(): Uint8Array {
    return this.#joined?.subarray(0, this.#length) ?? this.#first ?? new Uint8Array();
  }

  add(from: number, to: number): void {
    const part = this.#source.subarray(from, to);
    if (!this.#first) {
      this.#first = part;
      this.#length = part.byteLength;
      return;
    }
    if (!this.#joined) {
      this.#joined = new Uint8Array(this.#source.byteLength);
      this.#joined.set(this.#first);
    }
    this.#joined.set(part, this.#length);
    this.#length += part.byteLength;
  }
}
