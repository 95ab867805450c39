// What tools may ask of a chat's sub-chats, in the name of the chat's owner. Implemented by actors/chat/subagents/subagents.ts; every answer is a
// result for the model, and `ToolError` says in words what cannot be done (facts/chats 5.1 and 5.9).
import type { ToolResult } from "../result.ts";

/** general: does work of its own. explore: only looks around. computer_use: works on the desktop. */
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
  /** Starts a sub-chat; the same call never starts two, whatever happens in between. */
  spawn(input: SpawnInput): Promise<ToolResult>;
  /**
   * Resolves when the sub-chat's turn has ended, or after `timeout_ms`. What it says in the meantime is written to `live`. When `signal` fires
   * because the turn was interrupted, the sub-chat is interrupted, too.
   */
  wait(chat_id: string, timeout_ms: number, live: Live, signal: AbortSignal): Promise<ToolResult>;
  /** Queued while the sub-chat is busy; with `interrupt` its turn is stopped for it. The same call never says it twice. */
  message(chat_id: string, text: string, interrupt: boolean): Promise<ToolResult>;
  interrupt(chat_id: string): Promise<ToolResult>;
  /** The newest first. */
  list(limit: number, offset: number): Promise<ToolResult>;
  /** The models that can be used now. */
  models(): Promise<ToolResult>;
}

/** More output for followers of a call; not part of its result. */
export type Live = {
  write(text: string): void;
  /** Forget what was written: what comes takes its place. */
  reset(): void;
};
