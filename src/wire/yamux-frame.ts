// yamux frames: a 12-byte big-endian header, followed in data frames by `length` bytes of payload. The parser takes chunks of any size and
// passes payload on as views, without buffering frames. Rejects unknown versions and types. [WI-4]
import { WireError } from "./wire-error.ts";

export const FRAME = { data: 0, window: 1, ping: 2, go_away: 3 } as const;
export const FLAG = { syn: 1, ack: 2, fin: 4, rst: 8 } as const;
export const GO_AWAY = { normal: 0, protocol_error: 1, internal_error: 2 } as const;

const HEADER_BYTES = 12;
/** Initial window of a stream per direction, in bytes. */
export const INITIAL_WINDOW = 256 * 1024;
const MAX_U32 = 0xffff_ffff;

export type FrameType = (typeof FRAME)[keyof typeof FRAME];
export type FrameHeader = { type: FrameType; flags: number; stream_id: number; length: number };

export interface FrameSink {
  /** Called for each complete header. May throw WireError `protocol`, which ends the parsing. */
  header(header: FrameHeader): void;
  /** Called with a piece of the current data frame's payload. `isLast` marks its final piece. Never called for empty payloads. */
  payload(piece: Uint8Array, isLast: boolean): void;
}

/** Returns a header as bytes. `length` is payload bytes, window increment, ping value or go-away code, by type. */
export const encodeHeader = (type: FrameType, flags: number, streamId: number, length: number): Uint8Array => {
  if (length > MAX_U32) throw new RangeError("A yamux length has 32 bits.");
  const bytes = new Uint8Array(HEADER_BYTES);
  const view = new DataView(bytes.buffer);
  view.setUint8(1, type);
  view.setUint16(2, flags);
  view.setUint32(4, streamId);
  view.setUint32(8, length);
  return bytes;
};

const decodeHeader = (bytes: Uint8Array, at: number): FrameHeader => {
  const view = new DataView(bytes.buffer, bytes.byteOffset + at, HEADER_BYTES);
  const type = view.getUint8(1);
  if (view.getUint8(0) !== 0) throw new WireError("protocol", "Unknown yamux version.");
  if (!isFrameType(type)) throw new WireError("protocol", "Unknown yamux frame type.");
  return { type, flags: view.getUint16(2), stream_id: view.getUint32(4), length: view.getUint32(8) };
};

const isFrameType = (type: number): type is FrameType => type <= FRAME.go_away;

export class FrameParser {
  readonly #sink: FrameSink;
  /** A header that has arrived only in part, and the number of its bytes. */
  readonly #partialHeader = new Uint8Array(HEADER_BYTES);
  #partialBytes = 0;
  /** Bytes of the current payload that have not arrived yet. */
  #remaining = 0;

  constructor(sink: FrameSink) {
    this.#sink = sink;
  }

  /** True within a frame: a connection that ends now was cut off. */
  get isInsideFrame(): boolean {
    return this.#partialBytes > 0 || this.#remaining > 0;
  }

  /**
   * Parses the next bytes of the connection from `at`, and returns the position where it has stopped: at the end, or after `maxSteps`
   * headers and payloads. Throws WireError `protocol` on the first malformed frame.
   */
  push(chunk: Uint8Array, at = 0, maxSteps = Number.POSITIVE_INFINITY): number {
    let position = at;
    for (let step = 0; position < chunk.byteLength && step < maxSteps; step++) {
      position = this.#remaining > 0 ? this.#readPayload(chunk, position) : this.#readHeader(chunk, position);
    }
    return position;
  }

  #readPayload(chunk: Uint8Array, at: number): number {
    const end = Math.min(at + this.#remaining, chunk.byteLength);
    this.#remaining -= end - at;
    this.#sink.payload(chunk.subarray(at, end), this.#remaining === 0);
    return end;
  }

  #readHeader(chunk: Uint8Array, at: number): number {
    if (this.#partialBytes === 0 && chunk.byteLength - at >= HEADER_BYTES) {
      this.#begin(decodeHeader(chunk, at));
      return at + HEADER_BYTES;
    }
    const end = Math.min(at + HEADER_BYTES - this.#partialBytes, chunk.byteLength);
    this.#partialHeader.set(chunk.subarray(at, end), this.#partialBytes);
    this.#partialBytes += end - at;
    if (this.#partialBytes === HEADER_BYTES) {
      this.#partialBytes = 0;
      this.#begin(decodeHeader(this.#partialHeader, 0));
    }
    return end;
  }

  #begin(header: FrameHeader): void {
    if (header.type === FRAME.data) this.#remaining = header.length;
    this.#sink.header(header);
  }
}
