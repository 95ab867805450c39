// The right of a turn to talk to a model: so many have it at once. Given by runner.ts, given back by the turn while it only waits.

export type Slot = {
  /** Gives it back; harmless twice. */
  leave(): void;
  /** Waits until there is one again, or until the signal. */
  take(signal: AbortSignal): Promise<void>;
};

/** Which turn it is: of the chat, on this history, with this slot. */
export type TurnOf = { readonly chat_id: string; readonly history_version: number; readonly slot: Slot };
