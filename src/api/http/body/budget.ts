// Bounds the memory of the bodies that are being read. When a sender stops before the last byte, the bytes stay in memory until the request
// times out, so that a few hundred such requests would fill the machine (rule HT-49). Bodies that are streamed to disk are not counted, and
// the AI gateway counts its own until their calls end.
import { AppError } from "#base/errors.ts";

export class BodyBudget {
  readonly #total: number;
  readonly #each: number;
  readonly #held = new Map<string, number>();
  #sum = 0;

  /** `total`: bytes of all bodies; `each`: of those of one sender. */
  constructor(total: number, each: number) {
    this.#total = total;
    this.#each = each;
  }

  /** Returns the reservation of a sender for one body, of nothing yet. */
  open(sender: string): BodyReservation {
    let reserved = 0;
    return {
      add: (bytes) => {
        const held = this.#held.get(sender) ?? 0;
        if (held + bytes > this.#each || this.#sum + bytes > this.#total) {
          throw new AppError("overloaded", "Too many large request bodies are being received. Please retry.");
        }
        reserved += bytes;
        this.#change(sender, bytes);
      },
      release: () => {
        this.#change(sender, -reserved);
        reserved = 0;
      },
    };
  }

  #change(sender: string, bytes: number): void {
    const held = (this.#held.get(sender) ?? 0) + bytes;
    if (held === 0) this.#held.delete(sender);
    else this.#held.set(sender, held);
    this.#sum += bytes;
  }
}

interface BodyReservation {
  /** Reserves more bytes. Throws 503 when too many are being read. */
  add(bytes: number): void;
  /** Releases all of them. */
  release(): void;
}
