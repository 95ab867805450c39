// Reads a terminal slowly, like a client with a slow connection.
import { type BareSocket, type CloseFrame, closeFrame } from "#test/support/net/bare-socket.ts";

/** Waits until all buffers between the server and the test are full. */
export const waitUntilStalled = async (): Promise<void> => {
  // Nothing reports full buffers. A second without reading fills every buffer on this machine.
  await new Promise((resolve) => setTimeout(resolve, 1_000));
};

/** Reads to the close frame in small steps and checks that the payload is `size` bytes of repeated `pattern`. */
export const readSlowly = async (
  socket: BareSocket,
  size: number,
  pattern: string,
): Promise<{ bytes: number; isRight: boolean; close: CloseFrame | undefined }> => {
  let offset = 0;
  let isRight = true;
  // Compares whole frames: comparing byte by byte would take longer than the transfer.
  let repeated = Buffer.alloc(64 * 1024, pattern);
  for await (const frame of socket.frames()) {
    if (frame.opcode === 8) return { bytes: offset, isRight, close: closeFrame(frame) };
    if (frame.opcode !== 2) continue;
    const start = offset % pattern.length;
    const end = start + frame.payload.byteLength;
    if (end > repeated.byteLength) repeated = Buffer.alloc(end, pattern);
    if (!frame.payload.equals(repeated.subarray(start, end))) isRight = false;
    offset += frame.payload.byteLength;
    if (offset > size) isRight = false;
  }
  return { bytes: offset, isRight, close: undefined };
};
