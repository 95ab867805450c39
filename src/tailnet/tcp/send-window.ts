// The congestion window, controlled by delay instead of loss. Once per round trip, the minimum round-trip time of that round is compared
// with the recent minimum: the difference is queueing delay. The target is a delay of five milliseconds, which keeps the path full without
// delaying other traffic; it is two milliseconds while a person types on another connection with the same peer. A loss is not always a sign
// of congestion here (a full relay queue, a dropped datagram), so losses shrink the window substantially only if there is a queue or there
// are many of them. [TL-24]
import { MSS } from "./sequence.ts";

export const TARGET_QUEUE_MS = 5;
/** The target while a person types. It is lower because a keystroke and its echo both wait in the queue. */
const TYPING_QUEUE_MS = 2;
/** On a path with a high latency, the target while a person types is this share of it, so that jitter does not leave the path idle. */
const TYPING_QUEUE_SHARE = 1 / 8;
export const INITIAL_WINDOW = 16 * MSS;
export const MIN_WINDOW = 4 * MSS;
export const MAX_WINDOW = 2 * 1024 * 1024;
/** Minimum duration of a round: on a path shorter than a millisecond, single measurements mean little. */
const MIN_ROUND_MS = 1;
/** A larger share of losses counts as congestion, regardless of the delay. */
const HIGH_LOSS_SHARE = 0.15;

export type AckSample = {
  /** Newly acknowledged bytes. */
  bytes: number;
  /** Round-trip time of the newest of these segments in milliseconds; undefined if all were retransmitted. */
  sample: number | undefined;
  now: number;
  /** The recent minimum of the round-trip time, in milliseconds. */
  base: number;
  /** The smoothed round-trip time, in milliseconds. */
  smooth: number;
  /** There was more data to send than the window allowed. */
  wasFull: boolean;
  /** A person is typing on another connection with the same peer. */
  isTypingElsewhere: boolean;
};

export class SendWindow {
  #size = INITIAL_WINDOW;
  #isDoubling = true;
  #round = { since: Number.NEGATIVE_INFINITY, shortest: Number.POSITIVE_INFINITY, acked: 0, lost: 0, wasFull: false };

  /** Maximum number of bytes in flight. */
  get size(): number {
    return this.#size;
  }

  onAck({ bytes, sample, now, base, smooth, wasFull, isTypingElsewhere }: AckSample): void {
    const round = this.#round;
    if (round.since === Number.NEGATIVE_INFINITY) round.since = now;
    if (sample !== undefined) round.shortest = Math.min(round.shortest, sample);
    round.acked += bytes;
    round.wasFull ||= wasFull;
    if (now - round.since < Math.max(MIN_ROUND_MS, smooth) || round.shortest === Number.POSITIVE_INFINITY) return;
    this.#endRound(base, isTypingElsewhere ? getQueueTarget(base) : TARGET_QUEUE_MS);
    this.#round = { since: now, shortest: Number.POSITIVE_INFINITY, acked: 0, lost: 0, wasFull: false };
  }

  /** Reports bytes detected as lost. */
  onLoss(bytes: number): void {
    this.#round.lost += bytes;
  }

  /** Shrinks the window after a retransmission timeout, and lets it double again. */
  onTimeout(): void {
    this.#set(this.#size / 4);
    this.#isDoubling = true;
  }

  #endRound(base: number, target: number): void {
    const { shortest, acked, lost, wasFull } = this.#round;
    const queue = shortest - base;
    if (lost > 0) this.#isDoubling = false;
    if (lost > HIGH_LOSS_SHARE * (acked + lost)) this.#set(this.#size / 2);
    else if (queue > target) {
      this.#isDoubling = false;
      this.#set(this.#size * Math.max(0.5, (base + target) / shortest));
    } else if (lost > 0 && queue > target / 2) this.#set(this.#size * 0.85);
    else if (!wasFull) return;
    else if (this.#isDoubling) this.#set(this.#size * 2);
    else this.#set(this.#size + Math.max(2 * MSS, (this.#size / 8) * (1 - queue / target)));
  }

  #set(size: number): void {
    this.#size = Math.round(Math.min(MAX_WINDOW, Math.max(MIN_WINDOW, size)));
  }
}

const getQueueTarget = (base: number): number =>
  Math.min(TARGET_QUEUE_MS, Math.max(TYPING_QUEUE_MS, base * TYPING_QUEUE_SHARE));
