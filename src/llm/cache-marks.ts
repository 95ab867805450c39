// Marks prompts for providers that cache only marked positions: the system prompt and the newest messages, so that the next call of a turn
// pays only for new content (facts/chats 5.4). Pure; used by stream.ts.
import type { LanguageModelV4Message, LanguageModelV4Prompt } from "@ai-sdk/provider";
import type { ProviderKind } from "#schema/chats/model-provider.ts";

/** The provider allows four marks. Two in the history let the next call find the end of this one. */
const MAX_NEWEST_MARKS = 2;
const MARK = { anthropic: { cacheControl: { type: "ephemeral" } } };

/** Returns the prompt unchanged for providers without marks. */
export const addCacheMarks = (kind: ProviderKind, prompt: LanguageModelV4Prompt): LanguageModelV4Prompt => {
  if (kind !== "anthropic") return prompt;
  const markedIndexes = prompt
    .flatMap(({ role }, index) => (role === "user" || role === "tool" ? [index] : []))
    .slice(-MAX_NEWEST_MARKS);
  const systemIndex = prompt.findLastIndex(({ role }) => role === "system");
  return prompt.map((message, index): LanguageModelV4Message => {
    if (index !== systemIndex && !markedIndexes.includes(index)) return message;
    return { ...message, providerOptions: { ...message.providerOptions, ...MARK } };
  });
};
