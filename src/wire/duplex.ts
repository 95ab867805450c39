// The interface of a bidirectional byte channel: implemented by yamux streams, the connections of agent dialers, and in-memory channels in
// tests. Chunk boundaries have no meaning.
import { toWireError, type WireError } from "./wire-error.ts";

export interface Duplex extends AsyncIterable<Uint8Array> {
  /**
   * Returns the next bytes, which the caller then owns; undefined after the peer has ended its side. Throws WireError if the channel broke.
   */
  read(): Promise<Uint8Array | undefined>;
  /**
   * Resolves when all bytes are sent; waits while the peer grants no window. `bytes` must not change until then. Calls are queued in order.
   */
  write(bytes: Uint8Array): Promise<void>;
  /** Ends this side after the written bytes. The peer may continue to send. Can be called more than once, and after a failure. */
  end(): Promise<void>;
  /** Breaks the channel in both directions immediately and drops unread bytes. */
  reset(reason?: string): void;
  /** Resolves with undefined once both sides have ended, or with the error if the channel broke. Never rejects. */
  readonly closed: Promise<WireError | undefined>;
}

/** Iterates over the chunks of a readable channel. */
export async function* readChunks(source: Pick<Duplex, "read">): AsyncGenerator<Uint8Array, void, undefined> {
  for (;;) {
    const chunk = await source.read();
    if (chunk === undefined) return;
    yield chunk;
  }
}

/**
 * Copies bytes between two channels in both directions, with backpressure: at most one chunk per direction is in flight. Resolves when both
 * directions have ended. If one breaks, both channels are reset. Never rejects. `onChunk` is called for each chunk.
 */
export const pipe = async (left: Duplex, right: Duplex, onChunk?: (bytes: number) => void): Promise<void> => {
  const move = async (from: Duplex, to: Duplex): Promise<void> => {
    for (;;) {
      const chunk = await from.read();
      if (chunk === undefined) return to.end();
      onChunk?.(chunk.byteLength);
      await to.write(chunk);
    }
  };
  try {
    await Promise.all([move(left, right), move(right, left)]);
  } catch (error) {
    const { message } = toWireError(error);
    left.reset(message);
    right.reset(message);
  }
};
