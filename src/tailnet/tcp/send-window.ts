// How much may be on its way: by delay, not by loss. Once in a round trip the shortest time of that round is compared with the shortest of late:
// what is above it is queue, and about five milliseconds of queue keep the way full without holding up what else goes there; two, while someone
// types on another connection with the same peer. Losses alone say little here (a full queue of the relay, a dropped datagram), so
// they shrink it much only where there is a queue or they are many. [TL-24]
import { MSS } from "./sequence.ts";

export const TARGET_QUEUE_MS = 5;
/** The same alongside someone who types: each of the programs on the way is passed twice by a key and its echo, so the queue is felt twice. */
const TYPED_QUEUE_MS = 2;
/** On a long way its own time is what is felt; there the queue may be this share of it, so that jitter does not empty the way. */
const TYPED_QUEUE_SHARE = 1 / 8;
export const FIRST_WINDOW = 16 * MSS;
export const MIN_WINDOW = 4 * MSS;
export const MAX_WINDOW = 2 * 1024 * 1024;
/** A round lasts at least so long: on a way shorter than a millisecond single measurements say nothing. */
const MIN_ROUND_MS = 1;
/** A share of losses above this counts as congestion, whatever the delay. */
const MANY_LOST = 0.15;

export type Acknowledged = {
  /** Bytes newly acknowledged. */
  bytes: number;
  /** Milliseconds, of the newest segment among them; undefined where none was sent only once. */
  sample: number | undefined;
  now: number;
  /** The shortest and the smoothed round trip of late. */
  base: number;
  smooth: number;
  /** Whether there was more to send than the window let. */
  wasFull: boolean;
  /** Whether someone types on another connection with the same peer. */
  isTypedBeside: boolean;
};

export class SendWindow {
  #size = FIRST_WINDOW;
  #isDoubling = true;
  #round = { since: Number.NEGATIVE_INFINITY, shortest: Number.POSITIVE_INFINITY, acked: 0, lost: 0, wasFull: false };

  /** Bytes that may be on their way. */
  get size(): number {
    return this.#size;
  }

  acknowledged({ bytes, sample, now, base, smooth, wasFull, isTypedBeside }: Acknowledged): void {
    const round = this.#round;
    if (round.since === Number.NEGATIVE_INFINITY) round.since = now;
    if (sample !== undefined) round.shortest = Math.min(round.shortest, sample);
    round.acked += bytes;
    round.wasFull ||= wasFull;
    if (now - round.since < Math.max(MIN_ROUND_MS, smooth) || round.shortest === Number.POSITIVE_INFINITY) return;
    this.#endRound(base, isTypedBeside ? typedQueue(base) : TARGET_QUEUE_MS);
    this.#round = { since: now, shortest: Number.POSITIVE_INFINITY, acked: 0, lost: 0, wasFull: false };
  }

  /** So many bytes were found lost. */
  lost(bytes: number): void {
    this.#round.lost += bytes;
  }

  /** Nothing has return for a long time: start over. */
  timedOut(): void {
    this.#set(this.#size / 4);
    this.#isDoubling = true;
  }

  #endRound(base: number, target: number): void {
    const { shortest, acked, lost, wasFull } = this.#round;
    const queue = shortest - base;
    if (lost > 0) this.#isDoubling = false;
    if (lost > MANY_LOST * (acked + lost)) this.#set(this.#size / 2);
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

const typedQueue = (base: number): number =>
  Math.min(TARGET_QUEUE_MS, Math.max(TYPED_QUEUE_MS, base * TYPED_QUEUE_SHARE));
