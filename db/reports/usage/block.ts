// Packed usage: the half-hour buckets (facts/platform 6.1) of one user and template over 32 days, as a detail with every bucket and a small
// digest for reports over whole blocks. Pure; used by the aggregation (actors/usage) and by the reports.

export const BUCKET_MS = 1_800_000;
/** Buckets per block: 32 days. */
export const BLOCK = 1536;
const BITS_BYTES = BLOCK / 8;
/** Maximum minutes of a bucket. */
export const MAX_BUCKET_MINUTES = 30;
/** The pseudo app for any usage at all. */
export const ANY_APP = 0;

const MAX_USERS = 2 ** 24;
const MAX_TEMPLATES = 2 ** 18;

/** Returns a row's number. Rows are ordered by block, then user, then template. */
export const toRowId = (block: number, user: number, template: number): number =>
  (block * MAX_USERS + user) * MAX_TEMPLATES + template;
export const toTemplate = (id: number): number => id % MAX_TEMPLATES;
export const toUser = (id: number): number => Math.floor(id / MAX_TEMPLATES) % MAX_USERS;
export const toBlock = (id: number): number => Math.floor(id / MAX_TEMPLATES / MAX_USERS);

/** Minutes by app and bucket, and each bucket's latency in half milliseconds (0: none). */
export type Block = { readonly apps: Map<number, Uint8Array>; readonly latency: Uint16Array };

export const createBlock = (): Block => ({ apps: new Map(), latency: new Uint16Array(BLOCK) });

/** Returns the minutes of one app, creating them if needed. */
export const getMinutes = (block: Block, app: number): Uint8Array => {
  let minutes = block.apps.get(app);
  if (!minutes) {
    minutes = new Uint8Array(BLOCK);
    block.apps.set(app, minutes);
  }
  return minutes;
};

/** Counts the minutes in a mask. */
export const countBits = (mask: number): number => {
  let count = 0;
  for (let rest = mask; rest !== 0; rest &= rest - 1) count++;
  return count;
};

/** Returns the median of latencies in milliseconds, in half milliseconds; 0 without any. */
export const computeMedian = (samples: readonly { ms: number; count: number }[]): number => {
  const sorted = [...samples].sort((a, b) => a.ms - b.ms);
  const total = sorted.reduce((sum, { count }) => sum + count, 0);
  if (total === 0) return 0;
  const valueAt = (rank: number): number => {
    let seen = 0;
    for (const { ms, count } of sorted) {
      seen += count;
      if (rank < seen) return ms;
    }
    return 0;
  };
  return Math.min(65_535, valueAt(Math.floor((total - 1) / 2)) + valueAt(Math.floor(total / 2)));
};

/** Counts runs of adjacent used buckets in [from, to) of the block. */
export const countRuns = (minutes: Uint8Array, from = 0, to = BLOCK): number => {
  let runs = 0;
  for (let i = from; i < to; i++) if (minutes[i] !== 0 && (i === from || minutes[i - 1] === 0)) runs++;
  return runs;
};

const computeSum = (minutes: Uint8Array): number => {
  let sum = 0;
  for (let i = 0; i < BLOCK; i++) sum += minutes[i] as number;
  return sum;
};

const sortApps = (block: Block): [number, Uint8Array][] => [...block.apps].sort(([a], [b]) => a - b);

/** Size of a detail's header: the number of apps, key and bucket count of each, and the number of buckets with a latency. */
const measureHead = (appCount: number): number => 2 + appCount * 6 + 2;

/**
 * Packs a detail: after the header, a section per app with a bit for each used bucket and their minutes; then latencies in the same way.
 */
export const packDetail = (block: Block): Uint8Array => {
  const apps = sortApps(block);
  const counts = apps.map(([, minutes]) => minutes.reduce((sum, one) => sum + (one === 0 ? 0 : 1), 0));
  const latencyCount = block.latency.reduce((sum, one) => sum + (one === 0 ? 0 : 1), 0);
  const appBytes = counts.reduce((sum, count) => sum + BITS_BYTES + count, 0);
  const bytes = new Uint8Array(measureHead(apps.length) + appBytes + BITS_BYTES + 2 * latencyCount);
  const view = new DataView(bytes.buffer);
  view.setUint16(0, apps.length, true);
  for (const [i, [app]] of apps.entries()) {
    view.setUint32(2 + i * 6, app, true);
    view.setUint16(6 + i * 6, counts[i] as number, true);
  }
  view.setUint16(measureHead(apps.length) - 2, latencyCount, true);
  let offset = measureHead(apps.length);
  const setBit = (i: number): void => {
    bytes[offset + (i >> 3)] = (bytes[offset + (i >> 3)] as number) | (1 << (i & 7));
  };
  for (const [, minutes] of apps) {
    let next = offset + BITS_BYTES;
    for (let i = 0; i < BLOCK; i++) {
      if (minutes[i] === 0) continue;
      setBit(i);
      bytes[next++] = minutes[i] as number;
    }
    offset = next;
  }
  let next = offset + BITS_BYTES;
  for (let i = 0; i < BLOCK; i++) {
    if (block.latency[i] === 0) continue;
    setBit(i);
    view.setUint16(next, block.latency[i] as number, true);
    next += 2;
  }
  return bytes;
};

const BIT_COUNTS = Uint8Array.from({ length: 256 }, (_, byte) => countBits(byte));

/** Reads a detail in place, only as far as needed. */
export class Detail {
  readonly #bytes: Uint8Array;
  readonly #offsets = new Map<number, number>();
  readonly #latencyOffset: number;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const appCount = view.getUint16(0, true);
    let offset = measureHead(appCount);
    for (let i = 0; i < appCount; i++) {
      this.#offsets.set(view.getUint32(2 + i * 6, true), offset);
      offset += BITS_BYTES + view.getUint16(6 + i * 6, true);
    }
    this.#latencyOffset = offset;
  }

  get apps(): Iterable<number> {
    return this.#offsets.keys();
  }

  /** Calls `visit` for buckets in [low, high) in which the app was used. */
  eachBucket(app: number, low: number, high: number, visit: (i: number, minutes: number) => void): void {
    const offset = this.#offsets.get(app);
    if (offset === undefined) return;
    const from = offset + BITS_BYTES;
    this.#eachMarked(offset, low, high, (i, index) => visit(i, this.#bytes[from + index] as number));
  }

  eachLatency(low: number, high: number, visit: (i: number, value: number) => void): void {
    const from = this.#latencyOffset + BITS_BYTES;
    const bytes = this.#bytes;
    this.#eachMarked(this.#latencyOffset, low, high, (i, index) => visit(i, u16(bytes, from + index * 2)));
  }

  #eachMarked(offset: number, low: number, high: number, visit: (i: number, index: number) => void): void {
    let index = 0;
    for (let byte = 0; byte * 8 < high; byte++) {
      const marks = this.#bytes[offset + byte] as number;
      if (byte * 8 + 8 <= low) {
        index += BIT_COUNTS[marks] as number;
        continue;
      }
      for (let rest = marks; rest !== 0; rest &= rest - 1) {
        const i = byte * 8 + 31 - Math.clz32(rest & -rest);
        if (i >= low && i < high) visit(i, index);
        index++;
      }
    }
  }
}

const u16 = (bytes: Uint8Array, offset: number): number =>
  (bytes[offset] as number) | ((bytes[offset + 1] as number) << 8);

export const unpackDetail = (bytes: Uint8Array): Block => {
  const detail = new Detail(bytes);
  const block = createBlock();
  for (const app of detail.apps) {
    const minutes = getMinutes(block, app);
    detail.eachBucket(app, 0, BLOCK, (i, one) => {
      minutes[i] = one;
    });
  }
  detail.eachLatency(0, BLOCK, (i, value) => {
    block.latency[i] = value;
  });
  return block;
};

const DIGEST_HEAD_BYTES = BITS_BYTES + 6;
const DIGEST_APP_BYTES = 10;

/**
 * Packs a digest: bits of any usage; minutes of any usage; for each app minutes, runs, and whether it was used at the block's ends;
 * latencies with counts.
 */
export const packDigest = (block: Block): Uint8Array => {
  const apps = sortApps(block).filter(([app]) => app !== ANY_APP);
  const latencies = new Map<number, number>();
  for (const one of block.latency) if (one !== 0) latencies.set(one, (latencies.get(one) ?? 0) + 1);
  const bytes = new Uint8Array(DIGEST_HEAD_BYTES + apps.length * DIGEST_APP_BYTES + latencies.size * 4);
  const view = new DataView(bytes.buffer);
  const anyUsage = block.apps.get(ANY_APP) ?? new Uint8Array(BLOCK);
  for (let i = 0; i < BLOCK; i++) {
    if (anyUsage[i] !== 0) bytes[i >> 3] = (bytes[i >> 3] as number) | (1 << (i & 7));
  }
  view.setUint16(BITS_BYTES, computeSum(anyUsage), true);
  view.setUint16(BITS_BYTES + 2, apps.length, true);
  view.setUint16(BITS_BYTES + 4, latencies.size, true);
  let offset = DIGEST_HEAD_BYTES;
  for (const [app, minutes] of apps) {
    view.setUint32(offset, app, true);
    view.setUint16(offset + 4, computeSum(minutes), true);
    view.setUint16(offset + 6, countRuns(minutes), true);
    view.setUint8(offset + 8, (minutes[0] ? 1 : 0) | (minutes[BLOCK - 1] ? 2 : 0));
    offset += DIGEST_APP_BYTES;
  }
  for (const [value, count] of latencies) {
    view.setUint16(offset, value, true);
    view.setUint16(offset + 2, count, true);
    offset += 4;
  }
  return bytes;
};

/** Reads a digest in place: reports read a hundred thousand of them, and views of their bytes would cost more than the bytes. */
export class Digest {
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** Minutes of any usage. */
  get minutes(): number {
    return u16(this.#bytes, BITS_BYTES);
  }

  /**
   * Bits of any usage; the lowest bit of the first byte is the first bucket. The buffer continues with other data after the block's bits.
   */
  get bits(): Uint8Array {
    return this.#bytes;
  }

  eachApp(visit: (app: number, minutes: number, runs: number, atStart: boolean, atEnd: boolean) => void): void {
    const bytes = this.#bytes;
    let offset = DIGEST_HEAD_BYTES;
    for (let left = u16(bytes, BITS_BYTES + 2); left > 0; left--, offset += DIGEST_APP_BYTES) {
      const ends = bytes[offset + 8] as number;
      const app = u16(bytes, offset) + u16(bytes, offset + 2) * 65_536;
      visit(app, u16(bytes, offset + 4), u16(bytes, offset + 6), (ends & 1) !== 0, (ends & 2) !== 0);
    }
  }

  /** Calls `visit` with each latency in half milliseconds, and its number of buckets. */
  eachLatency(visit: (value: number, count: number) => void): void {
    const bytes = this.#bytes;
    let offset = DIGEST_HEAD_BYTES + u16(bytes, BITS_BYTES + 2) * DIGEST_APP_BYTES;
    for (let left = u16(bytes, BITS_BYTES + 4); left > 0; left--, offset += 4)
      visit(u16(bytes, offset), u16(bytes, offset + 2));
  }
}

export const createBits = (): Uint8Array => new Uint8Array(BITS_BYTES);

/** Returns whether any bit in [from, to) is set. */
export const hasBitIn = (bits: Uint8Array, from: number, to: number): boolean => {
  if (to <= from) return false;
  const [first, last] = [from >> 3, (to - 1) >> 3];
  const head = 255 & (255 << (from & 7));
  const tail = 255 >> (7 - ((to - 1) & 7));
  if (first === last) return ((bits[first] as number) & head & tail) !== 0;
  if (((bits[first] as number) & head) !== 0) return true;
  for (let i = first + 1; i < last; i++) if (bits[i] !== 0) return true;
  return ((bits[last] as number) & tail) !== 0;
};

/** Returns whether a set bit of one coincides with, or is adjacent to, a set bit of the other. */
export const hasAdjacentBits = (a: Uint8Array, b: Uint8Array): boolean => {
  let before = 0;
  let byte = b[0] as number;
  for (let i = 0; i < BITS_BYTES; i++) {
    const after = i === BITS_BYTES - 1 ? 0 : (b[i + 1] as number);
    const near = byte | (byte << 1) | (byte >> 1) | (before >> 7) | (after << 7);
    if (((a[i] as number) & near & 255) !== 0) return true;
    before = byte;
    byte = after;
  }
  return false;
};
