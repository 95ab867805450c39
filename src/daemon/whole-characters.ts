// Cuts output between characters, so that each part can be decoded as text.

/** Returns the bytes without an incomplete UTF-8 character at the end. Bytes that are not UTF-8 are unchanged. */
export const trimPartialCharacter = (bytes: Uint8Array): Uint8Array => {
  for (let back = 1; back <= Math.min(3, bytes.byteLength); back += 1) {
    const byte = bytes[bytes.byteLength - back] as number;
    if ((byte & 0xc0) === 0x80) continue;
    const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return needed > back ? bytes.subarray(0, bytes.byteLength - back) : bytes;
  }
  return bytes;
};
