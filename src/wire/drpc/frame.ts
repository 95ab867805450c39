// DRPC framing: encodes packets and the frames that they are split into. Used by packets.ts and both sides of a call. Refuses to encode a
// packet over 4 MiB. [WI-11]
import { AppError } from "#base/errors.ts";
import { WireError } from "../wire-error.ts";

export const KIND = { invoke: 1, message: 2, error: 3, cancel: 4, close: 5, close_send: 6, metadata: 7 } as const;
export type Kind = (typeof KIND)[keyof typeof KIND];

export interface Packet {
  kind: Kind;
  stream_id: number;
  message_id: number;
  body: Uint8Array;
}

export const MAX_PACKET = 4 * 1024 * 1024;
export const MAX_FRAME_DATA = 64 * 1024;
/**
 * Bits of the control byte. `DONE`: this is the last frame of its packet. `CONTROL`: a receiver that does not know the kind may ignore it.
 */
export const DONE = 0x01;
export const CONTROL = 0x80;
/** Maximum bytes of a frame's header: a control byte and three varints of up to ten bytes. */
const MAX_HEADER = 31;

/** The error code for a call to an unknown method. */
export const UNIMPLEMENTED = 12;

/** The peer's error for one call: a code, 0 if it has none, and a message. */
export class RpcError extends AppError {
  readonly code: number;

  constructor(code: number, message: string) {
    super("internal", message);
    this.code = code;
  }
}

/** Encodes several packets, split into frames of at most 64 KiB payload. Throws WireError `too_large` beyond 4 MiB. */
export const encodePackets = (...packets: readonly Packet[]): Uint8Array => {
  let size = 0;
  for (const { body } of packets) {
    if (body.byteLength > MAX_PACKET) throw new WireError("too_large", "A message of more than 4 MiB.");
    size += body.byteLength + MAX_HEADER * Math.max(1, Math.ceil(body.byteLength / MAX_FRAME_DATA));
  }
  const out = new Uint8Array(size);
  let at = 0;
  for (const packet of packets) {
    let from = 0;
    do {
      const piece = packet.body.subarray(from, from + MAX_FRAME_DATA);
      from += piece.byteLength;
      const done = from === packet.body.byteLength;
      out[at++] = (packet.kind << 1) | (done ? DONE : 0) | (packet.kind === KIND.cancel ? CONTROL : 0);
      at = writeVarint(out, at, packet.stream_id);
      at = writeVarint(out, at, packet.message_id);
      at = writeVarint(out, at, piece.byteLength);
      out.set(piece, at);
      at += piece.byteLength;
    } while (from < packet.body.byteLength);
  }
  return out.subarray(0, at);
};

export const NO_BODY = new Uint8Array(0);

export const encodeError = (code: number, text: string): Uint8Array => {
  const encodedText = new TextEncoder().encode(text);
  const body = new Uint8Array(8 + encodedText.byteLength);
  new DataView(body.buffer).setBigUint64(0, BigInt(code));
  body.set(encodedText, 8);
  return body;
};

export const decodeError = (body: Uint8Array): RpcError => {
  if (body.byteLength < 8) throw new WireError("protocol", "An error packet without a code.");
  const code = new DataView(body.buffer, body.byteOffset, 8).getBigUint64(0);
  return new RpcError(Number(code), new TextDecoder().decode(body.subarray(8)));
};

const writeVarint = (out: Uint8Array, at: number, value: number): number => {
  let rest = value;
  let next = at;
  while (rest >= 0x80) {
    out[next++] = (rest % 0x80) | 0x80;
    rest = Math.floor(rest / 0x80);
  }
  out[next++] = rest;
  return next;
};

/** Returns the number at `at` and the position after it; undefined if bytes are missing. */
const readVarint = (bytes: Uint8Array, at: number): [number, number] | undefined => {
  let value = 0;
  let scale = 1;
  for (let i = at; i < at + 10; i++) {
    const byte = bytes[i];
    if (byte === undefined) return undefined;
    value += (byte & 0x7f) * scale;
    if (value > Number.MAX_SAFE_INTEGER) break;
    if (byte < 0x80) return [value, i + 1];
    scale *= 0x80;
  }
  throw new WireError("protocol", "A number that is too large.");
};

export type Frame = { control: number; stream_id: number; message_id: number; length: number };
type FrameStart = Frame & { size: number };

/** Returns the frame header at `from` and its size; undefined if bytes are missing. Throws WireError `protocol`. */
export const readFrameStart = (bytes: Uint8Array, from: number): FrameStart | undefined => {
  const control = bytes[from];
  if (control === undefined) return undefined;
  const stream = readVarint(bytes, from + 1);
  const message = stream && readVarint(bytes, stream[1]);
  const length = message && readVarint(bytes, message[1]);
  if (!length) return undefined;
  return { control, stream_id: stream[0], message_id: message[0], length: length[0], size: length[1] - from };
};
