// A share of the memory for large pieces of work whose size is known before they start, such as the bodies of model calls. Pieces that do
// not fit wait, and are started fairly by person (rule CH-54).
import { GarbageCollection, shareOfMemory } from "./memory.ts";

const MIB = 1024 * 1024;
const MIN_EACH_BYTES = 64 * MIB;
const MAX_EACH_BYTES = 256 * MIB;
const MAX_TOTAL_BYTES = 1024 * MIB;
const MEMORY_FRACTION = 1 / 8;
/** Additional memory for small pieces, as a fraction of the share, so that they never wait for large pieces. */
const RESERVE_FRACTION = 1 / 8;
/** A piece up to this fraction of the share is small. */
const SMALL_FRACTION = 1 / 128;

type ShareLimits = {
  /** Bytes for everyone. */
  readonly total: number;
  /** Bytes for one holder, such as a person. */
  readonly each: number;
};

const computeLimits = (): ShareLimits => {
  const total = Math.max(2 * MIN_EACH_BYTES, Math.min(shareOfMemory(MEMORY_FRACTION), MAX_TOTAL_BYTES));
  return { total, each: Math.max(MIN_EACH_BYTES, Math.min(total / 2, MAX_EACH_BYTES)) };
};

type HeldBytes = { small: number; large: number };
type Waiter = {
  readonly holder: string;
  readonly bytes: number;
  readonly isSmall: boolean;
  readonly start: () => void;
};

/** Memory taken from the share. It is free again when all of its holds are released. */
export class MemoryHold implements Disposable {
  readonly #free: () => void;
  readonly #resize: (bytes: number) => void;
  readonly #holds: { count: number };
  #isReleased = false;

  constructor(free: () => void, resize: (bytes: number) => void, holds = { count: 0 }) {
    this.#free = free;
    this.#resize = resize;
    this.#holds = holds;
    holds.count += 1;
  }

  /** Sets the actual size, once it is known. Never waits. */
  resize(bytes: number): void {
    if (this.#holds.count > 0) this.#resize(bytes);
  }

  /** Returns a second hold on the same memory, which must be released too. */
  keep(): MemoryHold {
    return new MemoryHold(this.#free, this.#resize, this.#holds);
  }

  /** Releases the memory, once. */
  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#holds.count -= 1;
    if (this.#holds.count === 0) this.#free();
  }

  [Symbol.dispose](): void {
    this.release();
  }
}

/**
 * Of the large pieces that wait, the piece of the holder with the least memory starts next, or of several, the one that has waited longest.
 * No other large piece overtakes it, because it could then wait forever. Small pieces wait only for each other. A piece that is larger than
 * the share runs without other large pieces.
 */
export class MemoryShare {
  readonly #limits: ShareLimits;
  readonly #reserve: number;
  readonly #total: HeldBytes = { small: 0, large: 0 };
  readonly #holders = new Map<string, HeldBytes>();
  readonly #waiters: Waiter[] = [];
  readonly #garbage = new GarbageCollection();

  /** By default, the limits depend on the memory of the process. */
  constructor(limits: ShareLimits = computeLimits()) {
    this.#limits = limits;
    this.#reserve = limits.total * RESERVE_FRACTION;
  }

  /** Number of pieces that wait. */
  get waiting(): number {
    return this.#waiters.length;
  }

  /** Bytes in use. */
  get used(): number {
    return this.#total.small + this.#total.large;
  }

  /** Resolves when the memory is available. Rejects with the signal's reason as soon as it aborts. */
  async take(holder: string, bytes: number, signal: AbortSignal): Promise<MemoryHold> {
    signal.throwIfAborted();
    const isSmall = bytes <= this.#limits.total * SMALL_FRACTION;
    await new Promise<void>((resolve, reject) => {
      const onAbort = (): void => {
        this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
        reject(signal.reason);
        this.#startNext();
      };
      const start = (): void => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      const waiter: Waiter = { holder, bytes, isSmall, start };
      signal.addEventListener("abort", onAbort, { once: true });
      this.#waiters.push(waiter);
      this.#startNext();
    });
    let heldBytes = bytes;
    const resize = (newBytes: number): void => {
      if (!isSmall && newBytes < heldBytes) this.#garbage.add(heldBytes - newBytes);
      this.#addBytes(holder, isSmall, newBytes - heldBytes);
      heldBytes = newBytes;
      this.#startNext();
    };
    return new MemoryHold(() => resize(0), resize);
  }

  #startNext(): void {
    for (let next = this.#findNext(); next; next = this.#findNext()) {
      this.#waiters.splice(this.#waiters.indexOf(next), 1);
      this.#addBytes(next.holder, next.isSmall, next.bytes);
      next.start();
    }
  }

  #findNext(): Waiter | undefined {
    const small = this.#findFirst((one) => one.isSmall && this.#fitsSmall(one));
    if (small) return small;
    const large = this.#findFirst((one) => !one.isSmall && this.#fitsHolder(one));
    return large && this.#fitsLarge(large) ? large : undefined;
  }

  /** Returns the waiter whose holder has the least memory; of several, the one that has waited longest. */
  #findFirst(fits: (one: Waiter) => boolean): Waiter | undefined {
    const [first, ...others] = this.#waiters.filter(fits);
    return first && others.reduce((least, one) => (this.#sumBytes(one) < this.#sumBytes(least) ? one : least), first);
  }

  #fitsSmall({ holder, bytes }: Waiter): boolean {
    const { small, large } = this.#getHeld(holder);
    if (this.#total.small + bytes <= this.#reserve && small + bytes <= this.#reserve / 2) return true;
    const isLargeWaiting = this.#waiters.some(({ isSmall }) => !isSmall);
    return !isLargeWaiting && this.used + bytes <= this.#limits.total && small + large + bytes <= this.#limits.each;
  }

  #fitsHolder({ holder, bytes }: Waiter): boolean {
    const { large } = this.#getHeld(holder);
    return large === 0 || large + bytes <= this.#limits.each;
  }

  #fitsLarge({ bytes }: Waiter): boolean {
    const { small, large } = this.#total;
    const otherBytes = large + Math.max(0, small - this.#reserve);
    return otherBytes === 0 || otherBytes + bytes <= this.#limits.total;
  }

  #getHeld(holder: string): HeldBytes {
    return this.#holders.get(holder) ?? { small: 0, large: 0 };
  }

  #sumBytes({ holder }: Waiter): number {
    const { small, large } = this.#getHeld(holder);
    return small + large;
  }

  #addBytes(holder: string, isSmall: boolean, bytes: number): void {
    const kind = isSmall ? "small" : "large";
    const held = this.#getHeld(holder);
    held[kind] += bytes;
    this.#total[kind] += bytes;
    if (held.small + held.large === 0) this.#holders.delete(holder);
    else this.#holders.set(holder, held);
  }
}
