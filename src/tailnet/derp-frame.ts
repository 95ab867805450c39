// Frames of the relay (facts/wire 3.2): a type byte, a length, a payload. Whole frames come out of a byte stream that knows no borders.
// Refuses frames above their limit before their payload has come in. [TL-2]

export const FRAME = {
  server_key: 0x01,
  client_info: 0x02,
  server_info: 0x03,
  send_packet: 0x04,
  receive_packet: 0x05,
  keep_alive: 0x06,
  note_preferred: 0x07,
  peer_gone: 0x08,
  peer_present: 0x09,
  forward_packet: 0x0a,
  watch_connections: 0x10,
  close_peer: 0x11,
  ping: 0x12,
  pong: 0x13,
  health: 0x14,
  restarting: 0x15,
} as const;

export const HEADER_BYTES = 5;
/** A packet as peers send it, without the key in front. */
export const MAX_PACKET = 64 * 1024;
/** The frame a client introduces itself with. */
export const MAX_CLIENT_INFO = 256 * 1024;
/** Any other frame: a key and a packet. */
export const MAX_FRAME = 32 + MAX_PACKET;

/** `DERP` and a key, in UTF-8. */
export const MAGIC = Uint8Array.of(0x44, 0x45, 0x52, 0x50, 0xf0, 0x9f, 0x94, 0x91);
/** Why a peer has disconnected. */
export const GONE = { disconnected: 0, not_here: 1 } as const;

/** What discovery packets begin with; they go by a queue of their own. */
const DISCOVERY = Uint8Array.of(0x54, 0x53, 0xf0, 0x9f, 0x92, 0xac);

export const isDiscovery = (packet: Uint8Array): boolean => DISCOVERY.every((byte, i) => packet[i] === byte);

/** One frame of these parts; a copy. */
export const encodeFrame = (type: number, ...parts: readonly Uint8Array[]): Uint8Array => {
  let length = 0;
  for (const part of parts) length += part.byteLength;
  const frame = new Uint8Array(HEADER_BYTES + length);
  writeHead(frame, 0, type, length);
  let at = HEADER_BYTES;
  for (const part of parts) {
    frame.set(part, at);
    at += part.byteLength;
  }
  return frame;
};

/** Writes the head of a frame at `at`. */
export const writeHead = (into: Uint8Array, at: number, type: number, length: number): void => {
  into[at] = type;
  into[at + 1] = length >>> 24;
  into[at + 2] = length >>> 16;
  into[at + 3] = length >>> 8;
  into[at + 4] = length;
};

/** A frame that may not be; the message is for the peer. */
export class FrameError extends Error {
  override readonly name = "FrameError";
  readonly tooBig: boolean;

  constructor(message: string, tooBig = false) {
    super(message);
    this.tooBig = tooBig;
  }
}

export interface Frame {
  type: number;
  /** May be a view of what was pushed: copy what is kept. */
  payload: Uint8Array;
}

const getLimit = (type: number): number => (type === FRAME.client_info ? MAX_CLIENT_INFO : MAX_FRAME);

/** Puts frames together again. Holds at most one frame that is not whole. */
export class FrameReader {
  #rest: Uint8Array | undefined;
  /** Bytes of `#rest` that count; it may be longer, to hold the frame once its length is known. */
  #held = 0;

  /** The frames that are whole now. Throws FrameError at the first one that may not be. */
  *push(chunk: Uint8Array): Generator<Frame> {
    let at = 0;
    while (at < chunk.byteLength || this.#held > 0) {
      if (this.#held > 0) {
        const taken = this.#fill(chunk.subarray(at));
        at += taken;
        const frame = wholeFrame(this.#rest as Uint8Array, 0, this.#held);
        if (frame === undefined) {
          if (at >= chunk.byteLength) return;
          continue;
        }
        this.#held = 0;
        this.#rest = undefined;
        yield frame;
        continue;
      }
      const frame = wholeFrame(chunk, at, chunk.byteLength);
      if (frame === undefined) {
        this.#fill(chunk.subarray(at));
        return;
      }
      at += HEADER_BYTES + frame.payload.byteLength;
      yield frame;
    }
  }

  /** Takes bytes up to the end of the header or, once that is there, of the frame. Answers how many it took. */
  #fill(bytes: Uint8Array): number {
    let taken = this.#take(bytes, HEADER_BYTES);
    if (this.#held < HEADER_BYTES) return taken;
    const header = this.#rest as Uint8Array;
    taken += this.#take(bytes.subarray(taken), HEADER_BYTES + readLength(header, 0));
    return taken;
  }

  #take(bytes: Uint8Array, upTo: number): number {
    const taken = Math.min(bytes.byteLength, upTo - this.#held);
    if (taken <= 0) return 0;
    const room = this.#rest?.byteLength ?? 0;
    if (room < this.#held + taken) {
      // Grows with what has really come, so a length alone costs nothing.
      const bigger = new Uint8Array(Math.min(upTo, Math.max(this.#held + taken, room * 2)));
      if (this.#rest) bigger.set(this.#rest.subarray(0, this.#held));
      this.#rest = bigger;
    }
    (this.#rest as Uint8Array).set(bytes.subarray(0, taken), this.#held);
    this.#held += taken;
    return taken;
  }
}

const wholeFrame = (bytes: Uint8Array, at: number, end: number): Frame | undefined => {
  if (end - at < HEADER_BYTES) return undefined;
  const length = readLength(bytes, at);
  const from = at + HEADER_BYTES;
  return end - from < length ? undefined : { type: bytes[at] as number, payload: bytes.subarray(from, from + length) };
};

/** The length in the header at `at`. Throws FrameError when it is above the limit of the frame's type. */
const readLength = (bytes: Uint8Array, at: number): number => {
  const type = bytes[at] as number;
  const byte = (place: number): number => bytes[at + place] as number;
  const length = ((byte(1) << 24) | (byte(2) << 16) | (byte(3) << 8) | byte(4)) >>> 0;
  if (length > getLimit(type)) throw new FrameError(`a frame of ${length} bytes is too large`, true);
  return length;
};
