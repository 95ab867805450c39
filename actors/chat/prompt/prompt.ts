// Assembles what a model gets with each call: one system message of blocks in a fixed order, then the history (facts/chats 5.4). Pure. Each
// provider assigns its blocks to slots, and none can precede the deployment's.
import type { CallSettings } from "#db/chats/settings.ts";
import type { PromptMessage } from "#src/llm/model.ts";
import { moveBehindResults } from "../hooks/effects.ts";

/** In order. Blocks of one slot keep the given order. */
export const SLOTS = [
  /** Slipway's text, then the administrator's, then the text that the chat was created with. */
  "deployment",
  "administrator",
  "chat",
  /** Whether the chat has a workspace. */
  "workspace",
  /** The purpose of a sub-chat. */
  "subagent",
  /** Instruction files of the workspace and the list of skills. */
  "instructions",
  "skills",
  /** The owner's custom prompt for all chats. */
  "personal",
  /** Plan or explore mode, with the administrator's text about it. */
  "mode",
  "advice",
] as const;
export type Slot = (typeof SLOTS)[number];

export type PromptBlock = { readonly slot: Slot; readonly text: string };

/** The chat properties that blocks depend on. */
export type PromptChat = {
  readonly owner_id: string;
  readonly plan_mode: "plan" | null;
  readonly workspace_id: string | null;
  readonly organization_id: string;
  /** Not a sub-chat. */
  readonly is_root: boolean;
  /** The type of a sub-chat; null in root chats. */
  readonly subagent_type: "general" | "explore" | "computer_use" | null;
};

/** Returns the blocks for a model call of this chat. Called for each model call; may return no blocks. */
export type BlockProvider = (
  scope: PromptChat & {
    readonly chat_id: string;
    readonly chat_key: number;
    /** The owner's custom prompt as a hook has seen it; undefined to use the current one. */
    readonly custom_prompt?: string | undefined;
    /** The current settings, loaded while other blocks are read. */
    readonly settings: Promise<CallSettings>;
  },
) => Promise<readonly PromptBlock[]>;

/** Puts system rows of the history into the slot `chat`, regardless of their position. Omits empty blocks (rule PA-1). */
export const assemblePrompt = (
  blocks: readonly PromptBlock[],
  history: readonly PromptMessage[],
): readonly PromptMessage[] => {
  const stored = history
    .filter(({ role }) => role === "system")
    .map(({ content }): PromptBlock => ({ slot: "chat", text: toText(content) }));
  const all = [...blocks, ...stored];
  const text = SLOTS.flatMap((slot) => all.filter((block) => block.slot === slot))
    .map((block) => block.text.trim())
    .filter((one) => one !== "")
    .join("\n\n");
  const message = moveBehindResults(history.filter(({ role }) => role !== "system"));
  return text === "" ? message : [{ role: "system", content: [{ type: "text", text }] }, ...message];
};

const toText = (content: PromptMessage["content"]): string =>
  content.flatMap((part) => (part.type === "text" && part.text ? [part.text] : [])).join("\n");
