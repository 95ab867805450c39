// A share of the memory for large pieces of work whose size is known before they begin, such as the bodies of model calls. What does not fit
// waits, in turns by person (rule CH-54).
import { GarbageCollection, shareOfMemory } from "./memory.ts";

const MIB = 1024 * 1024;
const MIN_EACH_BYTES = 64 * MIB;
const MAX_EACH_BYTES = 256 * MIB;
const MAX_TOTAL_BYTES = 1024 * MIB;
const MEMORY_SHARE = 1 / 8;
/** Small pieces have this part of the share in addition, so that they never wait for large ones. */
const RESERVE = 1 / 8;
/** A piece up to this part of the share is small. */
const SMALL = 1 / 128;

type ShareLimits = {
  /** Bytes for everyone. */
  readonly total: number;
  /** Bytes for one holder, such as a person. */
  readonly each: number;
};

const computeLimits = (): ShareLimits => {
  const total = Math.max(2 * MIN_EACH_BYTES, Math.min(shareOfMemory(MEMORY_SHARE), MAX_TOTAL_BYTES));
  return { total, each: Math.max(MIN_EACH_BYTES, Math.min(total / 2, MAX_EACH_BYTES)) };
};

type Held = { small: number; large: number };
type Waiter = {
  readonly holder: string;
  readonly bytes: number;
  readonly isSmall: boolean;
  readonly start: () => void;
};

/** Memory of the share. It is free again when everyone who keeps it has released it. */
export class MemoryHold implements Disposable {
  readonly #free: () => void;
  readonly #resize: (bytes: number) => void;
  readonly #keepers: { count: number };
  #isReleased = false;

  constructor(free: () => void, resize: (bytes: number) => void, keepers = { count: 0 }) {
    this.#free = free;
    this.#resize = resize;
    this.#keepers = keepers;
    keepers.count += 1;
  }

  /** Sets the actual size, once it is known. Never waits. */
  resize(bytes: number): void {
    if (this.#keepers.count > 0) this.#resize(bytes);
  }

  /** Keeps the memory for someone else, until they have released it, too. */
  keep(): MemoryHold {
    return new MemoryHold(this.#free, this.#resize, this.#keepers);
  }

  /** Releases the memory, once. */
  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#keepers.count -= 1;
    if (this.#keepers.count === 0) this.#free();
  }

  [Symbol.dispose](): void {
    this.release();
  }
}

/**
 * Among large pieces that wait, the holder with the least memory comes first, then the one who has waited longest; none overtakes it, or it
 * could wait forever. Small pieces wait only for each other. A piece that is larger than the share runs without other large ones.
 */
export class MemoryShare {
  readonly #limits: ShareLimits;
  readonly #reserve: number;
  readonly #all: Held = { small: 0, large: 0 };
  readonly #holders = new Map<string, Held>();
  readonly #waiters: Waiter[] = [];
  readonly #garbage = new GarbageCollection();

  /** `limits`: by default, they depend on the memory of the process. */
  constructor(limits: ShareLimits = computeLimits()) {
    this.#limits = limits;
    this.#reserve = limits.total * RESERVE;
  }

  /** Number of pieces that wait. */
  get waiting(): number {
    return this.#waiters.length;
  }

  /** Bytes in use. */
  get used(): number {
    return this.#all.small + this.#all.large;
  }

  /** Resolves when the memory is available. Rejects with the signal's reason as soon as it aborts. */
  async take(holder: string, bytes: number, signal: AbortSignal): Promise<MemoryHold> {
    signal.throwIfAborted();
    const isSmall = bytes <= this.#limits.total * SMALL;
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
    let held = bytes;
    const resize = (to: number): void => {
      if (!isSmall && to < held) this.#garbage.add(held - to);
      this.#count(holder, isSmall, to - held);
      held = to;
      this.#startNext();
    };
    return new MemoryHold(() => resize(0), resize);
  }

  #startNext(): void {
    for (let next = this.#findNext(); next; next = this.#findNext()) {
      this.#waiters.splice(this.#waiters.indexOf(next), 1);
      this.#count(next.holder, next.isSmall, next.bytes);
      next.start();
    }
  }

  #findNext(): Waiter | undefined {
    const small = this.#findFirst((one) => one.isSmall && this.#fitsSmall(one));
    if (small) return small;
    const large = this.#findFirst((one) => !one.isSmall && this.#fitsHolder(one));
    return large && this.#fitsLarge(large) ? large : undefined;
  }

  /** Returns the waiter whose holder has the least memory; of several, the one who has waited longest. */
  #findFirst(fits: (one: Waiter) => boolean): Waiter | undefined {
    const [first, ...others] = this.#waiters.filter(fits);
    return first && others.reduce((least, one) => (this.#sum(one) < this.#sum(least) ? one : least), first);
  }

  #fitsSmall({ holder, bytes }: Waiter): boolean {
    const { small, large } = this.#has(holder);
    if (this.#all.small + bytes <= this.#reserve && small + bytes <= this.#reserve / 2) return true;
    const isLargeWaiting = this.#waiters.some(({ isSmall }) => !isSmall);
    return !isLargeWaiting && this.used + bytes <= this.#limits.total && small + large + bytes <= this.#limits.each;
  }

  #fitsHolder({ holder, bytes }: Waiter): boolean {
    const { large } = this.#has(holder);
    return large === 0 || large + bytes <= this.#limits.each;
  }

  #fitsLarge({ bytes }: Waiter): boolean {
    const { small, large } = this.#all;
    const others = large + Math.max(0, small - this.#reserve);
    return others === 0 || others + bytes <= this.#limits.total;
  }

  #has(holder: string): Held {
    return this.#holders.get(holder) ?? { small: 0, large: 0 };
  }

  #sum({ holder }: Waiter): number {
    const { small, large } = this.#has(holder);
    return small + large;
  }

  #count(holder: string, isSmall: boolean, by: number): void {
    const kind = isSmall ? "small" : "large";
    const has = this.#has(holder);
    has[kind] += by;
    this.#all[kind] += by;
    if (has.small + has.large === 0) this.#holders.delete(holder);
    else this.#holders.set(holder, has);
  }
}
