// Bounds the memory of WebSocket messages from apps until their users have received them (rule AX-29).
import type { Clock, Timer } from "#base/clock.ts";
import { shareOfMemory } from "#base/system/memory.ts";
import type { MessageBudget } from "#src/wire/index.ts";
import { ByteBudget, type Reservation } from "../http/body/budget.ts";

/** Longer messages have another budget, so that they never keep out short ones. */
const SHORT_BYTES = 64 * 1024;
/** Maximum time for one message while half of a budget is in use, because its memory is unavailable to others. */
const TIMEOUT_MS = 60_000;
const TOO_MANY = "Too many app messages are waiting. Try again later.";
/** An owner may use a quarter of a budget: enough for two of the longest messages on a server with 1 GiB of memory. */
const makeBudget = (share: number): ByteBudget => {
  const maxBytes = shareOfMemory(share);
  return new ByteBudget(maxBytes, maxBytes / 4, TOO_MANY);
};
const longMessages = makeBudget(1 / 4);
const shortMessages = makeBudget(1 / 16);

type Options = {
  readonly clock: Clock;
  /** The owner of the workspace. The limit applies to all of a person's workspaces together. */
  readonly owner_id: string;
  /** Called when a message has been in memory for too long while memory is short: its app or its user is too slow. */
  readonly onTimeout: () => void;
};

/** The memory of one app's current message. `add` throws 503 when the owner's messages, or all together, exceed their budget. */
export class AppMessageMemory implements MessageBudget {
  readonly #options: Options;
  #bytes = 0;
  #isLong = false;
  #reservation: Reservation;
  #timer: Timer | undefined;

  constructor(options: Options) {
    this.#options = options;
    this.#reservation = shortMessages.open(options.owner_id);
  }

  add(bytes: number): void {
    this.#bytes += bytes;
    if (this.#isLong || this.#bytes <= SHORT_BYTES) this.#reservation.add(bytes);
    else this.#becomeLong();
    // Most short messages are forwarded immediately, and need no timer.
    if (this.#isLong || this.#isShortOfMemory) this.#timer ??= this.#startTimer();
  }

  release(): void {
    this.#bytes = 0;
    this.#reservation.release();
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#isLong) this.#reservation = shortMessages.open(this.#options.owner_id);
    this.#isLong = false;
  }

  #becomeLong(): void {
    this.#isLong = true;
    this.#reservation.release();
    this.#reservation = longMessages.open(this.#options.owner_id);
    this.#reservation.add(this.#bytes);
  }

  get #isShortOfMemory(): boolean {
    return (this.#isLong ? longMessages : shortMessages).isHalfUsed(this.#options.owner_id);
  }

  #startTimer(): Timer {
    const { clock, onTimeout } = this.#options;
    return clock.after(TIMEOUT_MS, () => {
      this.#timer = undefined;
      if (this.#isShortOfMemory) onTimeout();
      else this.#timer = this.#startTimer();
    });
  }
}
