// Bounds the memory of WebSocket messages from apps until their users have received them (rule AX-29).
import type { Clock, Timer } from "#base/clock.ts";
import { shareOfMemory } from "#base/system/memory.ts";
import type { MessageBudget } from "#src/wire/index.ts";
import { ByteBudget, type Reservation } from "../http/body/budget.ts";

/** Longer messages have another budget, so that they never keep out short ones. */
const SHORT_BYTES = 64 * 1024;
/** Maximum time for one long message, because its memory is unavailable to others until it is complete. */
const TIMEOUT_MS = 60_000;
const TOO_MANY = "Too many app messages are waiting. Try again later.";
/** The owner's share is what two of the longest messages take on a server with 1 GiB of memory. */
const makeBudget = (share: number): ByteBudget => {
  const maxBytes = shareOfMemory(share);
  return new ByteBudget(maxBytes, maxBytes / 4, TOO_MANY);
};
const longMessages = makeBudget(1 / 4);
const shortMessages = makeBudget(1 / 16);

type Options = {
  readonly clock: Clock;
  /** The owner of the workspace, because one person can have many. */
  readonly owner_id: string;
  /** Called when a long message has been in memory for too long. */
  readonly onTimeout: () => void;
};

/** The memory of one app's current message. `add` throws 503 when the owner's messages, or all together, exceed their budget. */
export class AppMessageMemory implements MessageBudget {
  readonly #options: Options;
  #bytes = 0;
  #reservation: Reservation;
  #timer: Timer | undefined;

  constructor(options: Options) {
    this.#options = options;
    this.#reservation = shortMessages.open(options.owner_id);
  }

  add(bytes: number): void {
    this.#bytes += bytes;
    const { clock, owner_id, onTimeout } = this.#options;
    if (this.#bytes <= SHORT_BYTES || this.#timer) {
      this.#reservation.add(bytes);
      return;
    }
    this.#reservation.release();
    this.#reservation = longMessages.open(owner_id);
    this.#timer = clock.after(TIMEOUT_MS, onTimeout);
    this.#reservation.add(this.#bytes);
  }

  release(): void {
    this.#bytes = 0;
    this.#reservation.release();
    if (!this.#timer) return;
    this.#timer.cancel();
    this.#timer = undefined;
    this.#reservation = shortMessages.open(this.#options.owner_id);
  }
}
