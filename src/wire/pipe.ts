// Bytes from one two-way channel to another and back, as fast as the slower side takes them: one chunk is under way in each direction.
import type { Duplex } from "./duplex.ts";
import { asWireError } from "./wire-error.ts";

/** Resolves when both directions have ended. When one breaks, both channels are reset. Never rejects. `moved` hears of each chunk. */
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
