// The interface of tools to a chat's sub-chats, on behalf of the chat's owner. Implemented by actors/chat/subagents/subagents.ts; every
// answer is a result for the model, and `ToolError` explains failures (facts/chats 5.1 and 5.9).
import type { ToolResult } from "../result.ts";

/** `general`: works independently. `explore`: only reads. `computer_use`: works on the desktop. */
export const SUBAGENT_TYPES = ["general", "explore", "computer_use"] as const;
export type SubagentType = (typeof SUBAGENT_TYPES)[number];

export type SpawnInput = {
  readonly type: SubagentType;
  readonly prompt: string;
  readonly title?: string | undefined;
  readonly model_config_id?: string | undefined;
  readonly reasoning_effort?: string | undefined;
};

export interface Subagents {
  /** Starts a sub-chat. Idempotent per call, even after a crash. */
  spawn(input: SpawnInput): Promise<ToolResult>;
  /**
   * Resolves when the sub-chat's turn has ended, or after `timeout_ms`. Its output until then is written to `live`. If `signal` fires
   * because the turn was interrupted, the sub-chat is interrupted too.
   */
  wait(chat_id: string, timeout_ms: number, live: Live, signal: AbortSignal): Promise<ToolResult>;
  /** Sends a message, which is queued while the sub-chat is busy; with `interrupt`, its turn is stopped first. Idempotent per call. */
  message(chat_id: string, text: string, interrupt: boolean): Promise<ToolResult>;
  interrupt(chat_id: string): Promise<ToolResult>;
  /** Newest first. */
  list(limit: number, offset: number): Promise<ToolResult>;
  /** Returns the available models. */
  models(): Promise<ToolResult>;
}

/** Live output for followers of a call; not part of its result. */
export type Live = {
  write(text: string): void;
  /** Discards the output so far, which is replaced by what follows. */
  reset(): void;
};
