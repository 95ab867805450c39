// Uploads with progress.

const PIECE = 64 * 1024;

/** Returns the bytes as a stream. `onProgress` receives the number of bytes read so far. */
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
