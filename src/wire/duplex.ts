// The one shape of a two-way byte channel: yamux streams are one, tests bring in-memory ones, and whatever stands behind
// the agent dialer is one too. Borders between chunks mean nothing.
import type { WireError } from "./wire-error.ts";

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
