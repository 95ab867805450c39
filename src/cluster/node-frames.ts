// What nodes say to each other on a link: frames of a length, a kind and a number, and bytes. Pure.

/** Bytes of one frame. The largest message is a chat's, and smaller than that. */
export const MAX_FRAME_BYTES = 32 * 1024 * 1024;
const HEAD = 9;

/** Numbers are said on the wire: they are never given a second meaning. */
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

/** `id`: the call or channel that it belongs to; 0 for none. */
export type Frame = { readonly kind: number; readonly id: number; readonly body: Buffer };

/** The kind of the frame that these bytes begin with; undefined while that has not come. */
export const kindIn = (bytes: Buffer): number | undefined => bytes[4];

/** One frame as bytes. Must not be longer than `MAX_FRAME_BYTES`. */
export const toFrame = (kind: Kind, id: number, body: Uint8Array | string = ""): Buffer => {
  const length = typeof body === "string" ? Buffer.byteLength(body) : body.length;
  const bytes = Buffer.allocUnsafe(HEAD + length);
  bytes.writeUInt32BE(length, 0);
  bytes[4] = kind;
  bytes.writeUInt32BE(id, 5);
  if (typeof body === "string") bytes.write(body, HEAD);
  else bytes.set(body, HEAD);
  return bytes;
};

/** Puts frames together from pieces, however they are cut. Keeps no more than one frame that is not whole. */
export class FrameReader {
  #kept: Buffer[] = [];
  #size = 0;
  /** So many bytes have to be there before there is anything new to know. */
  #need = HEAD;

  /** The frames that are whole now, "wrong" when these are none. Their bodies are good until the next call. */
  take(bytes: Buffer): Frame[] | "wrong" {
    this.#size += bytes.length;
    if (this.#size < this.#need) {
      this.#kept.push(Buffer.from(bytes));
      return [];
    }
    let rest = this.#kept.length === 0 ? bytes : Buffer.concat([...this.#kept, bytes]);
    const frames: Frame[] = [];
    this.#need = HEAD;
    while (rest.length >= HEAD) {
      const length = rest.readUInt32BE(0);
      if (length > MAX_FRAME_BYTES) return "wrong";
      this.#need = HEAD + length;
      if (rest.length < this.#need) break;
      frames.push({ kind: rest[4] as number, id: rest.readUInt32BE(5), body: rest.subarray(HEAD, this.#need) });
      rest = rest.subarray(this.#need);
      this.#need = HEAD;
    }
    this.#kept = rest.length === 0 ? [] : [Buffer.from(rest)];
    this.#size = rest.length;
    return frames;
  }
}
