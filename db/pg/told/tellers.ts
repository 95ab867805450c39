// How many notices each node has told by its own words, and how many were heard of it. Notices come in their order and none is lost as long as the
// connection holds, so the last number says it all. Pure.
import type { Notice } from "./notice.ts";

export type Teller = {
  readonly epoch: number;
  /** How many notices it has told, as it has said with its last sign of life. */
  readonly told: number;
  /** Another one with each sign of life. */
  readonly sign: string;
};

type Known = Omit<Teller, "epoch"> & { readonly heard: number; readonly signed_at: number; readonly isSilent: boolean };

/** `missed`: someone has told more than was heard; `gone`: a node that has told may have meant to tell more. */
export type Found = "nothing" | "missed" | "gone";

export class Tellers {
  readonly #silence_ms: number;
  readonly #known = new Map<number, Known>();

  /** `silence_ms`: who gives no sign of life for so long may be gone. */
  constructor(silence_ms: number) {
    this.#silence_ms = silence_ms;
  }

  hear({ epoch, n = 0 }: Notice, now: number): void {
    const known = this.#known.get(epoch) ?? { told: 0, sign: "", signed_at: now, isSilent: false, heard: 0 };
    if (n > known.heard) this.#known.set(epoch, { ...known, heard: n });
  }

  /** All that is known to be told by now counts as heard. */
  catchUp(): void {
    for (const [epoch, known] of this.#known)
      this.#known.set(epoch, { ...known, heard: Math.max(known.heard, known.told) });
  }

  clear(): void {
    this.#known.clear();
  }

  /** Those who tell now. What was told a look ago and was not heard until now was missed: notices may be on their way for a moment. */
  see(tellers: readonly Teller[], now: number): Found {
    let [isMissed, isGone] = [false, false];
    for (const { epoch, told, sign } of tellers) {
      const known = this.#known.get(epoch) ?? { told: 0, sign, signed_at: now, isSilent: false, heard: 0 };
      isMissed ||= known.told > known.heard;
      const signed_at = sign === known.sign ? known.signed_at : now;
      const isSilent = now - signed_at >= this.#silence_ms;
      isGone ||= isSilent && !known.isSilent;
      this.#known.set(epoch, { told, sign, signed_at, isSilent, heard: Math.max(known.heard, known.told) });
    }
    for (const [epoch, { isSilent }] of this.#known) {
      if (tellers.some((one) => one.epoch === epoch)) continue;
      this.#known.delete(epoch);
      isGone ||= !isSilent;
    }
    return isMissed ? "missed" : isGone ? "gone" : "nothing";
  }
}
