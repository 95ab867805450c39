// The memory of this process, for limits that depend on it.

/** Returns a fraction of the memory that the control group, or else the machine, allows this process, in bytes. */
export const shareOfMemory = (fraction: number): number => Math.floor(process.constrainedMemory() * fraction);

const COLLECT_BYTES = Math.min(shareOfMemory(1 / 32), 64 * 1024 * 1024);
const COLLECT_FRACTION = 1 / 2;

/**
 * Collects garbage after large pieces of work if the memory is half full. Each byte of a piece leaves several bytes of garbage. The runtime
 * would collect them too late in a container, because it only knows the memory of the whole machine.
 */
export class GarbageCollection {
  /** Bytes since the last collection. */
  #bytes = 0;

  /** Records that a piece of this size has ended, and collects garbage if needed. */
  add(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes < COLLECT_BYTES) return;
    this.#bytes = 0;
    if (process.memoryUsage.rss() > shareOfMemory(COLLECT_FRACTION)) Bun.gc(true);
  }
}
