// The right of a turn to talk to a model: so many have it immediately. Given by runner.ts, given back by the turn while it only waits.

export type Slot = {
  /** Gives it back; harmless twice. */
  leave(): void;
  /** Waits until there is one again, or until the signal. */
  take(signal: AbortSignal): Promise<void>;
  /** True while another owner's chat waits that has less than this one's owner (rule CH-49). */
  isOwed(): boolean;
};

/** Which turn it is: of the chat, on this history, with this slot. */
export type TurnOf = {
  readonly chat_id: string;
  readonly part: number;
  readonly history_version: number;
  readonly slot: Slot;
};

/** A turn of many steps gives its slot away between two of them where that is only fair, and goes on once it has one again. */
export const letOthersIn = async (slot: Slot, signal: AbortSignal): Promise<void> => {
  if (signal.aborted || !slot.isOwed()) return;
  slot.leave();
  await slot.take(signal);
};
