// Hand-written WebSocket frames that no library would send.

export type FrameOptions = { masked?: boolean; final?: boolean; reserved?: number; announcedLength?: number };

/** Returns one client frame. `announcedLength` differs from the payload's length. */
export const frame = (opcode: number, payload: Uint8Array | string, options: FrameOptions = {}): Buffer => {
  const { masked = true, final = true, reserved = 0 } = options;
  const bytes = Buffer.from(payload as string);
  const length = options.announcedLength ?? bytes.length;
  const firstByte = (final ? 0x80 : 0) | reserved | opcode;
  const mask = masked ? 0x80 : 0;
  let head: Buffer;
  if (length < 126) head = Buffer.from([firstByte, mask | length]);
  else if (length < 65_536) {
    head = Buffer.from([firstByte, mask | 126, 0, 0]);
    head.writeUInt16BE(length, 2);
  } else {
    head = Buffer.from([firstByte, mask | 127, 0, 0, 0, 0, 0, 0, 0, 0]);
    head.writeBigUInt64BE(BigInt(length), 2);
  }
  return Buffer.concat(masked ? [head, Buffer.alloc(4), bytes] : [head, bytes]);
};

/** Returns the code of the close frame at the end of a server's output, if any. */
export const parseCloseCode = (received: string): number | undefined => {
  const bytes = Buffer.from(received.slice(received.indexOf("\r\n\r\n") + 4), "latin1");
  for (let offset = 0; offset + 1 < bytes.length; ) {
    const shortLength = (bytes[offset + 1] as number) & 0x7f;
    const [payloadStart, length] =
      shortLength < 126
        ? [offset + 2, shortLength]
        : shortLength === 126
          ? [offset + 4, bytes.readUInt16BE(offset + 2)]
          : [offset + 10, Number(bytes.readBigUInt64BE(offset + 2))];
    if (((bytes[offset] as number) & 0x0f) === 8 && length >= 2) return bytes.readUInt16BE(payloadStart);
    offset = payloadStart + length;
  }
  return undefined;
};
