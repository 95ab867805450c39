// What a model is given with each call: one system message of blocks in a fixed order, then the history (facts/chats 5.4). Pure: who
// knows a block says in which slot it stands, and nobody can put one before what the deployment says.
import type { CallSettings } from "#db/chats/settings.ts";
import type { PromptMessage } from "#src/llm/model.ts";
import { behindResults } from "../hooks/effects.ts";

/** From first to last; blocks of one slot keep the order they are given in. */
export const SLOTS = [
  /** Slipway's own words, then the administrator's, then those the chat was made with. */
  "deployment",
  "administrator",
  "chat",
  /** Whether the chat has a workspace. */
  "workspace",
  /** What a sub-chat is for. */
  "subagent",
  /** Instruction files of the workspace, and the list of skills. */
  "instructions",
  "skills",
  /** What the chat's owner has asked all of their chats for. */
  "personal",
  /** Planning or looking around, and the administrator's words on it. */
  "mode",
  "advice",
] as const;
export type Slot = (typeof SLOTS)[number];

export type PromptBlock = { readonly slot: Slot; readonly text: string };

/** What blocks depend on. */
export type PromptOf = {
  readonly owner_id: string;
  readonly plan_mode: "plan" | null;
  readonly workspace_id: string | null;
  readonly organization_id: string;
  /** No other chat's sub-chat. */
  readonly is_root: boolean;
  /** What a sub-chat was started for; null in root chats. */
  readonly subagent_type: "general" | "explore" | "computer_use" | null;
};

/** Says its blocks for a call of this chat's model, reread each time; none when there is nothing to say. */
export type BlockProvider = (
  of: PromptOf & {
    readonly chat_id: string;
    readonly chat_key: number;
    /** What the owner asks of all chats, where a hook has seen it; undefined: as it is now. */
    readonly custom_prompt?: string | undefined;
    /** As they are now: asked for while other blocks are read. */
    readonly settings: Promise<CallSettings>;
  },
) => Promise<readonly PromptBlock[]>;

/** Rows of the history that are for the system stand in the slot `chat`, wherever they are; an empty block is left out (rule PA-1). */
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
  const said = behindResults(history.filter(({ role }) => role !== "system"));
  return text === "" ? said : [{ role: "system", content: [{ type: "text", text }] }, ...said];
};

const toText = (content: PromptMessage["content"]): string =>
  content.flatMap((part) => (part.type === "text" && part.text ? [part.text] : [])).join("\n");
