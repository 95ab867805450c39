// A turn's slot. Slots limit how many turns run at the same time. runner.ts grants them, and a turn releases its slot while it only waits.
export type Slot = {
  /** Releases the slot. Idempotent. */
  leave(): void;
  /** Waits for a slot, or until the signal aborts. */
  take(signal: AbortSignal): Promise<void>;
  /** Returns whether a slot should go to a waiting chat first, because its owner has fewer slots than this chat's owner (rule CH-49). */
  isOwed(): boolean;
};

/** The chat, history and slot of a turn. */
export type TurnScope = {
  readonly chat_id: string;
  readonly part: number;
  readonly history_version: number;
  readonly slot: Slot;
};

/** Releases the slot if another owner should get one first, and waits for a new slot. Called between the steps of a turn. */
export const yieldSlot = async (slot: Slot, signal: AbortSignal): Promise<void> => {
  if (signal.aborted || !slot.isOwed()) return;
  slot.leave();
  await slot.take(signal);
};
