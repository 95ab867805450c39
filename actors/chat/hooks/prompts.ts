// Asks the lifecycle hook about a prompt before it is stored: of a new chat, a message, an edit or a sub-chat. Called outside of every
// mailbox. Throws `HookDenied` with a message for people, or `HookFailure`. In both cases, the prompt must not be stored.
import type { DynamicTool } from "#db/chats/chats.ts";
import { readUserChatSetting } from "#db/chats/settings.ts";
import type { Store } from "#db/engine/store.ts";
import type { MessagePart } from "#schema/chats/chat-part.ts";
import type { Hooks } from "#src/hooks/hooks.ts";
import { HookDenied, type HookMeta } from "#src/hooks/protocol.ts";
import type { CompactionRequest } from "../machine/decision.ts";
import { toPromptContent, toPromptText } from "./effects.ts";

export type Prompt = {
  readonly chat: {
    readonly id: string;
    readonly owner_id: string;
    readonly workspace_id: string | null;
    readonly parent_chat_id: string | null;
    readonly root_chat_id: string | null;
  };
  readonly content: readonly MessagePart[];
  /** Set for a new chat that has its own system prompt. */
  readonly system_prompt?: string;
  readonly dynamic_tools?: readonly DynamicTool[];
};

/** The prompt to store. `custom_prompt` is the owner's custom prompt that the hook has allowed; null if hooks are not enforced. */
export type AdmittedPrompt = { readonly content: MessagePart[]; readonly custom_prompt: string | null };

type Deps = { readonly store: Store; readonly hooks: Hooks };

export const admitPrompt = async ({ store, hooks }: Deps, prompt: Prompt): Promise<AdmittedPrompt> => {
  const { chat, content, system_prompt, dynamic_tools } = prompt;
  if (hooks.isOff) return { content: [...content], custom_prompt: null };
  const custom_prompt = await readUserChatSetting(store, chat.owner_id, "prompt");
  const answer = await hooks.decide({
    event: "user_prompt_submit",
    meta: toHookMeta(chat),
    data: {
      prompt: toPromptText(content),
      parts: content,
      custom_prompt,
      ...(system_prompt ? { system_prompt } : {}),
      ...(dynamic_tools && dynamic_tools.length > 0 ? { dynamic_tools } : {}),
    },
  });
  if (answer.permission?.decision === "deny") throw new HookDenied(answer.user_message || DENIED);
  return {
    content: toPromptContent(content, answer),
    custom_prompt: hooks.mode === "enforce" ? custom_prompt : null,
  };
};

/** Asks the hook about the owner's instructions for a summary, and returns them with the hook's additions. */
export const admitInstructions = async (
  deps: Deps,
  chat: Prompt["chat"],
  instructions: string,
): Promise<CompactionRequest> => {
  const { content } = await admitPrompt(deps, { chat, content: [{ type: "text", text: instructions }] });
  const joinText = (wanted: MessagePart["type"]): string =>
    content.flatMap(({ type, text }) => (type === wanted && text ? [text] : [])).join("\n\n");
  return { instructions: joinText("text"), context: joinText("hook-context"), notice: joinText("hook-notice") };
};

const DENIED = "The policy of this deployment does not allow this message.";

/** Returns the fields of an event that identify its chat. */
export const toHookMeta = ({ id, owner_id, workspace_id, parent_chat_id, root_chat_id }: Prompt["chat"]): HookMeta => ({
  chat_id: id,
  owner_id,
  ...(workspace_id === null ? {} : { workspace_id }),
  ...(parent_chat_id === null ? {} : { parent_chat_id }),
  ...(root_chat_id === null ? {} : { root_chat_id }),
});
