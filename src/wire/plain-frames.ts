// The frames of a client WebSocket for plain-websocket.ts. Incoming frames are passed on in pieces, without buffering messages. Outgoing
// frames are masked with zeros. Rejects frames that a server may not send. [WI-17]
import { WireError } from "./wire-error.ts";

const OPCODE = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;
const FINAL = 0x80;
const MASKED = 0x80;
const MAX_CONTROL_BYTES = 125;
const MAX_HEADER_BYTES = 10;
/** The code that is reported for a close frame without a code. */
const NO_STATUS_CODE = 1005;

export interface ServerFrameSink {
  /** Called with a piece of a binary message: a view of the pushed bytes. */
  data(piece: Uint8Array): void;
  /** Called when a text message starts. */
  text(): void;
  ping(payload: Uint8Array): void;
  close(code: number, reason: string): void;
}

export class ServerFrames {
  readonly #sink: ServerFrameSink;
  readonly #header = new Uint8Array(MAX_HEADER_BYTES);
  #headerBytes = 0;
  #opcode: number | undefined;
  #remaining = 0;
  #isInMessage = false;
  #control: Uint8Array[] = [];

  constructor(sink: ServerFrameSink) {
    this.#sink = sink;
  }

  /** Takes the next bytes of the connection. Throws WireError `protocol` on the first malformed frame. */
  push(chunk: Uint8Array): void {
    for (let at = 0; at < chunk.byteLength || this.#isComplete; ) {
      if (this.#opcode === undefined) {
        this.#header[this.#headerBytes] = chunk[at] as number;
        this.#headerBytes += 1;
        at += 1;
        this.#readHeader();
        continue;
      }
      const piece = chunk.subarray(at, at + this.#remaining);
      at += piece.byteLength;
      this.#remaining -= piece.byteLength;
      this.#handlePayload(piece);
    }
  }

  /** True for a frame without a payload. */
  get #isComplete(): boolean {
    return this.#opcode !== undefined && this.#remaining === 0;
  }

  #readHeader(): void {
    if (this.#headerBytes < 2) return;
    const [first = 0, second = 0] = this.#header;
    const short = second & 127;
    const extendedBytes = short < 126 ? 0 : short === 126 ? 2 : 8;
    if (this.#headerBytes < 2 + extendedBytes) return;
    const view = new DataView(this.#header.buffer);
    const length = extendedBytes === 0 ? short : extendedBytes === 2 ? view.getUint16(2) : Number(view.getBigUint64(2));
    this.#headerBytes = 0;
    this.#begin(first, (second & MASKED) !== 0, length);
  }

  #begin(first: number, isMasked: boolean, length: number): void {
    const opcode = first & 15;
    const isFinal = (first & FINAL) !== 0;
    if ((first & 0x70) !== 0 || !KNOWN_OPCODES.has(opcode)) throw toProtocolError("A frame of an unknown kind came.");
    if (isMasked) throw toProtocolError("A server must not mask.");
    if (length > Number.MAX_SAFE_INTEGER) throw toProtocolError("A frame is too long.");
    if (opcode >= OPCODE.close) {
      if (!isFinal || length > MAX_CONTROL_BYTES) throw toProtocolError("A control frame is malformed.");
    } else {
      if ((opcode === OPCODE.continuation) !== this.#isInMessage) throw toProtocolError("A message is not continued.");
      this.#isInMessage = !isFinal;
      if (opcode === OPCODE.text) this.#sink.text();
    }
    this.#opcode = opcode;
    this.#remaining = length;
  }

  #handlePayload(piece: Uint8Array): void {
    const opcode = this.#opcode;
    if (opcode !== undefined && opcode < OPCODE.close) {
      if (piece.byteLength > 0) this.#sink.data(piece);
    } else if (piece.byteLength > 0) this.#control.push(piece.slice());
    if (this.#remaining > 0) return;
    this.#opcode = undefined;
    const payload = Buffer.concat(this.#control);
    this.#control = [];
    if (opcode === OPCODE.ping) this.#sink.ping(payload);
    else if (opcode === OPCODE.close) this.#handleClose(payload);
  }

  #handleClose(payload: Buffer): void {
    if (payload.byteLength === 1) throw toProtocolError("A close frame is truncated.");
    const code = payload.byteLength === 0 ? NO_STATUS_CODE : payload.readUInt16BE(0);
    this.#sink.close(code, payload.toString("utf8", 2));
  }
}

const KNOWN_OPCODES: ReadonlySet<number> = new Set(Object.values(OPCODE));

const toProtocolError = (reason: string): WireError => new WireError("protocol", reason);

/** Shared memory for frames up to the longest one of yamux, because allocating costs more than copying. */
const sharedBuffer = new Uint8Array(256 * 1024 + 64);

/** Returns one frame with the joined parts as payload. Valid until the next call. */
export const encodeFrame = (kind: "binary" | "pong" | "close", parts: readonly Uint8Array[]): Uint8Array => {
  let size = 0;
  for (const part of parts) size += part.byteLength;
  const extendedBytes = size < 126 ? 0 : size < 65_536 ? 2 : 8;
  const frameLength = 2 + extendedBytes + 4 + size;
  const frame = frameLength <= sharedBuffer.byteLength ? sharedBuffer : new Uint8Array(frameLength);
  frame[0] = FINAL | OPCODE[kind];
  frame[1] = MASKED | (extendedBytes === 0 ? size : extendedBytes === 2 ? 126 : 127);
  const view = new DataView(frame.buffer);
  if (extendedBytes === 2) view.setUint16(2, size);
  if (extendedBytes === 8) view.setBigUint64(2, BigInt(size));
  view.setUint32(2 + extendedBytes, 0);
  let at = 6 + extendedBytes;
  for (const part of parts) {
    frame.set(part, at);
    at += part.byteLength;
  }
  return frame.subarray(0, frameLength);
};
