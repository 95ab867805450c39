// A turn's slot, which limits how many turns talk to models concurrently. Granted by runner.ts, and released by the turn while it only
// waits.

export type Slot = {
  /** Releases the slot. Idempotent. */
  leave(): void;
  /** Waits for a slot, or until the signal aborts. */
  take(signal: AbortSignal): Promise<void>;
  /** Returns whether another chat waits for a slot whose owner has fewer slots than this chat's owner (rule CH-49). */
  isOwed(): boolean;
};

/** Identifies a turn by its chat, history and slot. */
export type TurnScope = {
  readonly chat_id: string;
  readonly part: number;
  readonly history_version: number;
  readonly slot: Slot;
};

/** Between two steps of a long turn, releases the slot if another owner should get one first, and waits for a new slot. */
export const yieldSlot = async (slot: Slot, signal: AbortSignal): Promise<void> => {
  if (signal.aborted || !slot.isOwed()) return;
  slot.leave();
  await slot.take(signal);
};
