// Bytes that are sent, and how far they are.

const PIECE = 64 * 1024;

/** The bytes as a stream; `told` hears how many of them were taken, each time some were. */
export const counted = (bytes: Uint8Array, onProgress: (taken: number) => void): ReadableStream<Uint8Array> => {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      onProgress(at);
      if (at >= bytes.byteLength) return controller.close();
      controller.enqueue(bytes.subarray(at, at + PIECE));
      at = Math.min(at + PIECE, bytes.byteLength);
    },
  });
};
