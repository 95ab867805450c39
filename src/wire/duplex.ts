// The one shape of a two-way byte channel: yamux streams are one, tests bring in-memory ones, and whatever stands behind
// the agent dialer is one too. Borders between chunks mean nothing.
import { asWireError, type WireError } from "./wire-error.ts";

export interface Duplex extends AsyncIterable<Uint8Array> {
  /** The next bytes; undefined after the peer has ended its side. Throws WireError when the channel broke. The chunk is the caller's to keep. */
  read(): Promise<Uint8Array | undefined>;
  /** Resolves when all bytes have left for the peer; waits while the peer grants no window. Calls queue up in order; `bytes` must not change in the meantime. */
  write(bytes: Uint8Array): Promise<void>;
  /** Ends our side after what was written. The peer may go on sending. Harmless when repeated or after a failure. */
  end(): Promise<void>;
  /** Breaks both directions immediately and drops unread bytes. */
  reset(reason?: string): void;
  /** Settles once both sides have ended (undefined) or the channel broke (the reason). Never rejects. */
  readonly closed: Promise<WireError | undefined>;
}

/** Iterates over the chunks of anything that can be read. */
export async function* readChunks(source: Pick<Duplex, "read">): AsyncGenerator<Uint8Array, void, undefined> {
  for (;;) {
    const chunk = await source.read();
    if (chunk === undefined) return;
    yield chunk;
  }
}

/**
 * Moves bytes from one channel to the other and back, as fast as the slower side takes them: one chunk is under way in each direction. Resolves
 * when both directions have ended. When one breaks, both channels are reset. Never rejects. `moved` hears of each chunk.
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
    const { message } = asWireError(error);
    left.reset(message);
    right.reset(message);
  }
};
