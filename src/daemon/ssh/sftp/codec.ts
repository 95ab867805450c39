// Version 3 of the SSH file transfer protocol (draft-ietf-secsh-filexfer-02): splits a byte stream into packets and reads their fields.
// Rejects packets above 256 KiB and fields that exceed their packet. [WN-5]

export const REQUEST = {
  init: 1,
  open: 3,
  close: 4,
  read: 5,
  write: 6,
  lstat: 7,
  fstat: 8,
  setstat: 9,
  fsetstat: 10,
  opendir: 11,
  readdir: 12,
  remove: 13,
  mkdir: 14,
  rmdir: 15,
  realpath: 16,
  stat: 17,
  rename: 18,
  readlink: 19,
  symlink: 20,
  extended: 200,
} as const;
export const ANSWER = {
  version: 2,
  status: 101,
  handle: 102,
  data: 103,
  name: 104,
  attrs: 105,
  extendedReply: 201,
} as const;
export const STATUS = { ok: 0, eof: 1, noSuchFile: 2, denied: 3, failure: 4, badMessage: 5, unsupported: 8 } as const;
export const MAX_PACKET_BYTES = 256 * 1024;

/** An invalid packet, which ends the session. */
export class SftpError extends Error {
  override readonly name = "SftpError";
}

/** Reads the fields of one packet in order. */
export class Fields {
  readonly #bytes: Buffer;
  #offset = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  byte(): number {
    return this.#readBytes(1)[0] as number;
  }
  uint32(): number {
    return this.#readBytes(4).readUInt32BE(0);
  }
  /** File offsets above 2^53 are not supported. */
  long(): number {
    return Number(this.#readBytes(8).readBigUInt64BE(0));
  }
  /** Returns a view, not a copy. */
  bytes(): Buffer {
    return this.#readBytes(this.uint32());
  }
  text(): string {
    return this.bytes().toString("utf8");
  }
  get isOver(): boolean {
    return this.#offset >= this.#bytes.byteLength;
  }

  #readBytes(count: number): Buffer {
    if (count > this.#bytes.byteLength - this.#offset) throw new SftpError("a field reaches beyond its packet");
    this.#offset += count;
    return this.#bytes.subarray(this.#offset - count, this.#offset);
  }
}

export type Field = { byte: number } | { word: number } | { long: number } | { bytes: Uint8Array } | { text: string };

/** Encodes a packet with a length prefix. */
export const encodePacket = (type: number, ...fields: readonly Field[]): Buffer => {
  const parts: Buffer[] = [Buffer.from([0, 0, 0, 0, type])];
  for (const field of fields) {
    if ("byte" in field) parts.push(Buffer.from([field.byte]));
    else if ("word" in field) parts.push(uint32(field.word));
    else if ("long" in field) {
      const long = Buffer.alloc(8);
      long.writeBigUInt64BE(BigInt(Math.max(0, Math.trunc(field.long))));
      parts.push(long);
    } else {
      const bytes = "text" in field ? Buffer.from(field.text, "utf8") : Buffer.from(field.bytes);
      parts.push(uint32(bytes.byteLength), bytes);
    }
  }
  const packet = Buffer.concat(parts);
  packet.writeUInt32BE(packet.byteLength - 4, 0);
  return packet;
};

const uint32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value >>> 0);
  return bytes;
};

/** Reassembles packets. */
export class PacketReader {
  #chunks: Buffer[] = [];
  #bufferedBytes = 0;

  /** Yields the bodies of complete packets, which the caller owns. Throws SftpError for a packet that is too large or empty. */
  *push(chunk: Buffer): Generator<Buffer> {
    this.#chunks.push(chunk);
    this.#bufferedBytes += chunk.byteLength;
    while (this.#bufferedBytes >= 4) {
      const [first] = this.#chunks as [Buffer];
      const joined = first.byteLength >= 4 ? first : this.#join();
      const length = joined.readUInt32BE(0);
      if (length === 0 || length > MAX_PACKET_BYTES) throw new SftpError(`a packet of ${length} bytes`);
      if (this.#bufferedBytes < 4 + length) return;
      const packet = this.#join();
      yield packet.subarray(4, 4 + length);
      const remainder = packet.subarray(4 + length);
      this.#chunks = remainder.byteLength > 0 ? [remainder] : [];
      this.#bufferedBytes = remainder.byteLength;
    }
  }

  #join(): Buffer {
    if (this.#chunks.length > 1) this.#chunks = [Buffer.concat(this.#chunks)];
    return this.#chunks[0] as Buffer;
  }
}
