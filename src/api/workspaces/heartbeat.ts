// Heartbeat messages of streams: one timer for all streams, which each second serves only the streams that are due (rule WK-23).
import type { Clock, Timer } from "#base/clock.ts";

const INTERVAL_S = 15;

export class Heartbeat {
  readonly #clock: Clock;
  readonly #slices = Array.from({ length: INTERVAL_S }, () => new Set<() => void>());
  #timer: Timer | undefined;
  #second = 0;
  #size = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls `beat` every 15 seconds, the first time up to a second early, until the returned function is called. */
  join(beat: () => void): () => void {
    const slice = this.#slices[this.#second] as Set<() => void>;
    const ownBeat = (): void => beat();
    slice.add(ownBeat);
    this.#size += 1;
    this.#timer ??= this.#clock.every(1_000, () => this.#tick());
    return () => {
      if (!slice.delete(ownBeat)) return;
      this.#size -= 1;
      if (this.#size > 0) return;
      this.#timer?.cancel();
      this.#timer = undefined;
    };
  }

  #tick(): void {
    this.#second = (this.#second + 1) % INTERVAL_S;
    for (const beat of [...(this.#slices[this.#second] ?? [])]) beat();
  }
}
