// Which counters of data packets have come already (RFC 6479): a window of bits that moves on with the highest one. [TL-19]

/** Counters that may come late. */
export const WINDOW = 8_192 - 32;
const WORDS = 8_192 / 32;

export class ReplayWindow {
  readonly #words = new Uint32Array(WORDS);
  #highest = -1;

  /** True when this counter has not come and is not too old. Nothing is remembered: the packet may yet prove to be forged. */
  isFresh(counter: number): boolean {
    if (counter > this.#highest) return true;
    if (this.#highest - counter >= WINDOW) return false;
    return ((this.#words[Math.floor(counter / 32) % WORDS] as number) & (1 << (counter % 32))) === 0;
  }

  /** Remembers a counter of a packet that has opened. */
  mark(counter: number): void {
    if (counter > this.#highest) {
      const [last, next] = [Math.floor(this.#highest / 32), Math.floor(counter / 32)];
      for (let word = Math.max(last + 1, next - WORDS + 1); word <= next; word += 1) this.#words[word % WORDS] = 0;
      this.#highest = counter;
    }
    const word = Math.floor(counter / 32) % WORDS;
    this.#words[word] = (this.#words[word] as number) | (1 << (counter % 32));
  }
}
