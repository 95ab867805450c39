// Hand-written WebSocket frames that no library would send.

export type FrameOptions = { masked?: boolean; final?: boolean; reserved?: number; announced?: number };

/** Returns one client frame. `announced` is a length that differs from the payload's. */
export const frame = (opcode: number, payload: Uint8Array | string, options: FrameOptions = {}): Buffer => {
  const { masked = true, final = true, reserved = 0 } = options;
  const bytes = Buffer.from(payload as string);
  const length = options.announced ?? bytes.length;
  const first = (final ? 0x80 : 0) | reserved | opcode;
  const mask = masked ? 0x80 : 0;
  let head: Buffer;
  if (length < 126) head = Buffer.from([first, mask | length]);
  else if (length < 65_536) {
    head = Buffer.from([first, mask | 126, 0, 0]);
    head.writeUInt16BE(length, 2);
  } else {
    head = Buffer.from([first, mask | 127, 0, 0, 0, 0, 0, 0, 0, 0]);
    head.writeBigUInt64BE(BigInt(length), 2);
  }
  return Buffer.concat(masked ? [head, Buffer.alloc(4), bytes] : [head, bytes]);
};

/** Returns the code of the close frame at the end of a server's output, if any. */
export const parseCloseCode = (received: string): number | undefined => {
  const bytes = Buffer.from(received.slice(received.indexOf("\r\n\r\n") + 4), "latin1");
  for (let at = 0; at + 1 < bytes.length; ) {
    const short = (bytes[at + 1] as number) & 0x7f;
    const [start, length] =
      short < 126
        ? [at + 2, short]
        : short === 126
          ? [at + 4, bytes.readUInt16BE(at + 2)]
          : [at + 10, Number(bytes.readBigUInt64BE(at + 2))];
    if (((bytes[at] as number) & 0x0f) === 8 && length >= 2) return bytes.readUInt16BE(start);
    at = start + length;
  }
  return undefined;
};
