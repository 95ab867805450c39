// Dependencies of a chat's turn.
import type { Hooks } from "#src/hooks/hooks.ts";
import type { LanguageModels } from "#src/llm/model.ts";
import type { MessageSender } from "../../runtime/directory.ts";
import type { Recorder } from "../background/recorder.ts";
import type { TurnReports } from "../messages.ts";
import type { CompactionCounts } from "../prompt/compactor.ts";
import type { BlockProvider } from "../prompt/prompt.ts";
import type { ChatMcp } from "./mcp.ts";
import type { PartBatch } from "./stream-buffer.ts";
import type { AgentDeps } from "./tool-agent.ts";
import type { ChatWarnings } from "./warnings.ts";

export type TurnDeps = AgentDeps & {
  readonly models: LanguageModels;
  readonly chats: () => MessageSender<TurnReports>;
  readonly mcp: ChatMcp;
  readonly warnings: ChatWarnings;
  readonly hooks: Hooks;
  readonly publish: (chat_id: string, batch: PartBatch) => void;
  /** The prompt blocks before the history. */
  readonly blocks: readonly BlockProvider[];
  readonly compactions: CompactionCounts;
  /** Absent when recording is off. */
  readonly recorder?: Recorder | undefined;
};
