// A terminal that is read slowly, as over a poor line.
import { type BareSocket, type CloseFrame, closeFrame } from "#test/support/net/bare-socket.ts";

/** Waits until nothing more fits between the server and us. */
export const stalled = async (): Promise<void> => {
  // The kernel alone knows; a second without reading fills every buffer on this machine.
  await new Promise((resolve) => setTimeout(resolve, 1_000));
};

/** Reads to the close frame in small steps, checking each byte of the payload against `expected`. */
export const readSlowly = async (
  socket: BareSocket,
  size: number,
  expected: (at: number) => number,
): Promise<{ bytes: number; right: boolean; close: CloseFrame | undefined }> => {
  let at = 0;
  let right = true;
  for await (const frame of socket.frames()) {
    if (frame.opcode === 8) return { bytes: at, right, close: closeFrame(frame) };
    if (frame.opcode !== 2) continue;
    for (const byte of frame.payload) {
      if (at >= size || byte !== expected(at)) right = false;
      at += 1;
    }
  }
  return { bytes: at, right, close: undefined };
};
