// Round-trip times: smoothed for timeouts (RFC 6298), and the recent minimum, which is the path's latency without queues. [TL-24]

const MIN_RTO_MS = 200;
export const MAX_RTO_MS = 30_000;
const FIRST_RTO_MS = 1_000;
/** The minimum is reset after one to two of these intervals, because paths change. */
const BASE_MS = 10_000;

export class RoundTrip {
  #smooth = 0;
  #varies = 0;
  #now = { since: Number.NEGATIVE_INFINITY, base: Number.POSITIVE_INFINITY };
  #before = Number.POSITIVE_INFINITY;

  /** Adds one measurement in milliseconds, at a time of the monotonic clock. */
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

  /** The smoothed value; 0 before the first measurement. */
  get smooth(): number {
    return this.#smooth;
  }

  /** The recent minimum. */
  get base(): number {
    return Math.min(this.#now.base, this.#before);
  }

  /** The retransmission timeout, after which all unacknowledged data is considered lost. */
  get timeout(): number {
    if (this.#smooth === 0) return FIRST_RTO_MS;
    return Math.min(MAX_RTO_MS, Math.max(MIN_RTO_MS, this.#smooth + 4 * this.#varies));
  }
}
