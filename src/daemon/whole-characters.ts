// Where output is cut into pieces, no character is: used by anyone who sends it on as text.

/** The bytes without a last character of UTF-8 that is not complete. What is no UTF-8 at all stays as it is. */
export const wholeCharacters = (bytes: Uint8Array): Uint8Array => {
  for (let back = 1; back <= Math.min(3, bytes.byteLength); back += 1) {
    const byte = bytes[bytes.byteLength - back] as number;
    if ((byte & 0xc0) === 0x80) continue;
    const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return needed > back ? bytes.subarray(0, bytes.byteLength - back) : bytes;
  }
  return bytes;
};
