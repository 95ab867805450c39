// What a chat's actor starts or notifies after a commit. The actor depends only on this interface, which services.ts connects to turns,
// titles, pull requests and the search index.
import type { ChatState } from "./machine/chat-state.ts";
import type { PendingCall, RetryState } from "./machine/decision.ts";
import type { PromptChat } from "./prompt/prompt.ts";
import type { CopiedMessages } from "./turn/checkpoints.ts";
import type { PartBatch } from "./turn/stream-buffer.ts";

/**
 * How a turn starts. `isResumed`: a previous server process had started it, so its workspace may not have reconnected yet. `retry`: the
 * scheduled retry of a failed model call, which the turn waits for first (rule CH-16).
 */
export type TurnStart = { readonly isResumed?: boolean; readonly retry?: RetryState | null };

/** An interrupted chat, with its tool calls that had no result yet. */
export type InterruptedChat = {
  readonly id: string;
  readonly pending_calls: readonly PendingCall[];
  readonly scope: PromptChat;
};

type TurnFields = "id" | "owner_id" | "part" | "coding_agent" | "parent_chat_id" | "history_version";

export interface ChatEffects {
  /** Starts the turn for this version of the history. A running turn for another version is obsolete and ends. */
  startTurn(chat: Pick<ChatState, TurnFields>, started: TurnStart): void;
  /** Stops the turn and reports its partial output for this version of the history. */
  stopTurn(chat: InterruptedChat, history_version: number): void;
  /** Returns whether a turn of the chat is running, waiting or stopping. */
  hasActiveTurn(chat_id: string): boolean;
  /** Returns the output so far of the turn's current step. */
  getPartialOutput(chat_id: string): PartBatch | undefined;
  /** Called for a new copy of a chat, with the IDs of its messages in both chats. */
  chatCopied(chat: ChatState, copied: CopiedMessages): void;
  /** Called when new text was added to the search index. */
  searchTextAdded(): void;
  /** Called when a person's message enters the history. */
  promptAdded(state: ChatState): void;
  /** Called when the chat becomes idle, fails or waits for answers. */
  turnEnded(state: ChatState, isInterrupted: boolean): void;
}
