// What a chat's actor asks of the world once its writes are on disk. The actor knows this interface alone; turns, titles, pull requests
// and the index of searches stand behind it (services.ts).
import type { ChatState } from "./machine/chat-state.ts";
import type { PendingCall, RetryState } from "./machine/decision.ts";
import type { PromptOf } from "./prompt/prompt.ts";
import type { CopiedMessages } from "./turn/checkpoints.ts";
import type { PartBatch } from "./turn/stream-buffer.ts";

/**
 * How a turn was begun. `goesOn`: by another server, so whom it works with may not be back yet. `retry`: it waits for this time first, as
 * a provider has asked (rule CH-16).
 */
export type Begun = { readonly goesOn?: boolean; readonly retry?: RetryState | null };

/** Whose calls have no result yet, as of the interruption. */
export type Interrupted = {
  readonly id: string;
  readonly pending_calls: readonly PendingCall[];
  readonly about: PromptOf;
};

type StartedBy = "id" | "owner_id" | "part" | "coding_agent" | "parent_chat_id" | "history_version";

export interface ChatEffects {
  /** Begins the turn that the chat owes on its history; the one that runs on another history is obsolete and ends. */
  startTurn(chat: Pick<ChatState, StartedBy>, begun: Begun): void;
  /** Stops the turn and reports what it has said on this history. */
  stopTurn(chat: Interrupted, history_version: number): void;
  /** True while a turn of the chat runs, waits or is being stopped. */
  holdsTurn(chat_id: string): boolean;
  /** What the turn has said so far of its present step. */
  saidSoFar(chat_id: string): PartBatch | undefined;
  /** The chat is a copy: its messages are those of another one. */
  chatCopied(chat: ChatState, copied: CopiedMessages): void;
  /** There are new words to find. */
  wordsAdded(): void;
  /** A person's message has come into the history. */
  promptAdded(state: ChatState): void;
  /** The chat is at rest, in error or waits for answers. */
  turnEnded(state: ChatState, isInterrupted: boolean): void;
}
