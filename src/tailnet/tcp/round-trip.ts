// How long a segment and its acknowledgement take: smoothed for timeouts (RFC 6298), and the shortest of late, which is the way without any
// queue on it. [TL-24]

const MIN_RTO_MS = 200;
export const MAX_RTO_MS = 30_000;
const FIRST_RTO_MS = 1_000;
/** The shortest is forgotten after one to two of these, since ways change. */
const BASE_MS = 10_000;

export class RoundTrip {
  #smooth = 0;
  #varies = 0;
  #now = { since: Number.NEGATIVE_INFINITY, base: Number.POSITIVE_INFINITY };
  #before = Number.POSITIVE_INFINITY;

  /** One measurement, in milliseconds, at a time of the monotonic clock. */
  add(sample: number, at: number): void {
    if (this.#smooth === 0) {
      this.#smooth = Math.max(sample, 0.01);
      this.#varies = sample / 2;
    } else {
      this.#varies = 0.75 * this.#varies + 0.25 * Math.abs(this.#smooth - sample);
      this.#smooth = 0.875 * this.#smooth + 0.125 * sample;
    }
    if (at - this.#now.since >= BASE_MS) {
      this.#before = this.#now.base;
      this.#now = { since: at, base: sample };
    } else this.#now.base = Math.min(this.#now.base, sample);
  }

  /** Smoothed; 0 before the first measurement. */
  get smooth(): number {
    return this.#smooth;
  }

  /** The shortest of late. */
  get base(): number {
    return Math.min(this.#now.base, this.#before);
  }

  /** After how long without an acknowledgement everything counts as lost. */
  get timeout(): number {
    if (this.#smooth === 0) return FIRST_RTO_MS;
    return Math.min(MAX_RTO_MS, Math.max(MIN_RTO_MS, this.#smooth + 4 * this.#varies));
  }
}
