// A terminal that is read slowly, as over a slow line.
import { type BareSocket, type CloseFrame, closeFrame } from "#test/support/net/bare-socket.ts";

/** Waits until all buffers between the server and the test are full. */
export const waitUntilStalled = async (): Promise<void> => {
  // Only the kernel knows; a second without reading fills every buffer on this machine.
  await new Promise((resolve) => setTimeout(resolve, 1_000));
};

/** Reads to the close frame in small steps and checks that the payload is `size` bytes of repeated `pattern`. */
export const readSlowly = async (
  socket: BareSocket,
  size: number,
  pattern: string,
): Promise<{ bytes: number; right: boolean; close: CloseFrame | undefined }> => {
  let at = 0;
  let right = true;
  // Compares whole frames: comparing byte by byte would take longer than the transfer.
  let repeated = Buffer.alloc(64 * 1024, pattern);
  for await (const frame of socket.frames()) {
    if (frame.opcode === 8) return { bytes: at, right, close: closeFrame(frame) };
    if (frame.opcode !== 2) continue;
    const from = at % pattern.length;
    const to = from + frame.payload.byteLength;
    if (to > repeated.byteLength) repeated = Buffer.alloc(to, pattern);
    if (!frame.payload.equals(repeated.subarray(from, to))) right = false;
    at += frame.payload.byteLength;
    if (at > size) right = false;
  }
  return { bytes: at, right, close: undefined };
};
