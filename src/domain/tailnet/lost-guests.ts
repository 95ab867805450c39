// Clients of other nodes whose connection was lost, while agents here still keep them. Their own node watches their access and confirms that
// it still does. If the confirmations stop, that node may have ended and could not report a revocation, so the agents drop the client.
// [CP-66]
import type { Clock } from "#base/clock.ts";
import { type Coordinator, LOST_TTL_MS } from "#src/tailnet/index.ts";

/** Interval at which a node confirms that it watches its lost clients. */
export const CONFIRM_INTERVAL_MS = 20_000;
/** How long agents keep a lost client without a confirmation. As long as partners that a reconnected client does not name again. */
const UNCONFIRMED_TIMEOUT_MS = 2 * 60_000;

export class LostGuests {
  readonly #clock: Clock;
  readonly #coordinator: Pick<Coordinator, "isLost" | "releaseLost" | "revoke">;
  readonly #guests = new Map<string, { readonly lost_at: number; confirmed_at: number }>();

  constructor(clock: Clock, coordinator: Pick<Coordinator, "isLost" | "releaseLost" | "revoke">) {
    this.#clock = clock;
    this.#coordinator = coordinator;
    clock.every(CONFIRM_INTERVAL_MS, () => this.#check());
  }

  /** Called when the stream of this client has ended. */
  onEnd(id: string): void {
    const now = this.#clock.monotonic();
    if (this.#coordinator.isLost(id)) this.#guests.set(id, { lost_at: now, confirmed_at: now });
  }

  /** Called when the client's own node still watches its access. */
  confirm(id: string): void {
    const guest = this.#guests.get(id);
    if (guest) guest.confirmed_at = this.#clock.monotonic();
  }

  #check(): void {
    const now = this.#clock.monotonic();
    for (const [id, { lost_at, confirmed_at }] of this.#guests) {
      const isOver = now - lost_at >= LOST_TTL_MS;
      const isUnwatched = now - confirmed_at >= UNCONFIRMED_TIMEOUT_MS;
      if (this.#coordinator.isLost(id) && !isOver && !isUnwatched) continue;
      this.#guests.delete(id);
      if (!this.#coordinator.isLost(id)) continue;
      if (isUnwatched) this.#coordinator.revoke(id);
      this.#coordinator.releaseLost(id);
    }
  }
}
