// Frames on a link between nodes: length, kind, number, and bytes. Pure.

/** Maximum bytes of one frame. The largest messages are those to chats, which are smaller. */
export const MAX_FRAME_BYTES = 32 * 1024 * 1024;
const HEAD_BYTES = 9;

/** These numbers are part of the wire format and must never be reused. */
export const KIND = {
  alive: 0,
  call: 1,
  answer: 2,
  failure: 3,
  open: 4,
  data: 5,
  acknowledged: 6,
  end: 7,
  leaving: 8,
} as const;
export type Kind = (typeof KIND)[keyof typeof KIND];

/** `id`: the call that the frame belongs to; 0 for none. */
export type Frame = { readonly kind: number; readonly id: number; readonly body: Buffer };

/** Returns the kind of the frame that starts with these bytes; undefined until the kind has arrived. */
export const peekKind = (bytes: Buffer): number | undefined => bytes[4];

/** Encodes one frame. It must not be longer than `MAX_FRAME_BYTES`. */
export const toFrame = (kind: Kind, id: number, body: Uint8Array | string = ""): Buffer => {
  const length = typeof body === "string" ? Buffer.byteLength(body) : body.length;
  const bytes = Buffer.allocUnsafe(HEAD_BYTES + length);
  bytes.writeUInt32BE(length, 0);
  bytes[4] = kind;
  bytes.writeUInt32BE(id, 5);
  if (typeof body === "string") bytes.write(body, HEAD_BYTES);
  else bytes.set(body, HEAD_BYTES);
  return bytes;
};

/** Reassembles frames from arbitrary chunks. Buffers at most one incomplete frame. */
export class FrameReader {
  #chunks: Buffer[] = [];
  #size = 0;
  /** Bytes that must be buffered before anything new can be parsed. */
  #needed = HEAD_BYTES;

  /** Returns the frames that are now complete, or "wrong" for invalid data. Their bodies are valid until the next call. */
  readFrames(bytes: Buffer): Frame[] | "wrong" {
    this.#size += bytes.length;
    if (this.#size < this.#needed) {
      this.#chunks.push(Buffer.from(bytes));
      return [];
    }
    let rest = this.#chunks.length === 0 ? bytes : Buffer.concat([...this.#chunks, bytes]);
    const frames: Frame[] = [];
    this.#needed = HEAD_BYTES;
    while (rest.length >= HEAD_BYTES) {
      const length = rest.readUInt32BE(0);
      if (length > MAX_FRAME_BYTES) return "wrong";
      this.#needed = HEAD_BYTES + length;
      if (rest.length < this.#needed) break;
      frames.push({ kind: rest[4] as number, id: rest.readUInt32BE(5), body: rest.subarray(HEAD_BYTES, this.#needed) });
      rest = rest.subarray(this.#needed);
      this.#needed = HEAD_BYTES;
    }
    this.#chunks = rest.length === 0 ? [] : [Buffer.from(rest)];
    this.#size = rest.length;
    return frames;
  }
}
