// The interface of a bidirectional byte channel: implemented by yamux streams, the connections of agent dialers, and in-memory channels in
// tests. Chunk boundaries have no meaning.
import { toWireError, type WireError } from "./wire-error.ts";

export interface Duplex extends AsyncIterable<Uint8Array> {
  /**
   * Returns the next bytes; undefined after the peer has ended its side. Throws WireError if the channel broke. The caller may keep the
   * chunk.
   */
  read(): Promise<Uint8Array | undefined>;
  /**
   * Resolves when all bytes are sent; waits while the peer grants no window. Calls are queued in order; `bytes` must not change until then.
   */
  write(bytes: Uint8Array): Promise<void>;
  /** Ends our side after the written bytes. The peer may continue to send. Idempotent, also after a failure. */
  end(): Promise<void>;
  /** Breaks both directions immediately and drops unread bytes. */
  reset(reason?: string): void;
  /** Settles once both sides have ended (undefined) or the channel broke (the reason). Never rejects. */
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
 * directions have ended. If one breaks, both channels are reset. Never rejects. `moved` is called for each chunk.
 */
export const pipe = async (left: Duplex, right: Duplex, moved?: (bytes: number) => void): Promise<void> => {
  const move = async (from: Duplex, to: Duplex): Promise<void> => {
    for (;;) {
      const chunk = await from.read();
      if (chunk === undefined) return to.end();
      moved?.(chunk.byteLength);
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
