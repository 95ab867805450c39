// The memory of this process, for limits that depend on it.

/** Returns a share of the memory that the control group, or else the machine, allows this process, in bytes. */
export const shareOfMemory = (share: number): number => Math.floor(process.constrainedMemory() * share);

const COLLECT_BYTES = Math.min(shareOfMemory(1 / 32), 64 * 1024 * 1024);
const COLLECT_SHARE = 1 / 2;

/**
 * Collects the garbage of large pieces of work if the memory is half full. Each of their bytes leaves several bytes of garbage, which the
 * runtime would collect too late in a container, because it only knows the memory of the whole machine.
 */
export class GarbageCollection {
  /** Bytes since the last collection. */
  #bytes = 0;

  /** `bytes`: of a piece that has ended. */
  add(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes < COLLECT_BYTES) return;
    this.#bytes = 0;
    if (process.memoryUsage.rss() > shareOfMemory(COLLECT_SHARE)) Bun.gc(true);
  }
}
