// Marks for providers that keep what they have read only where a request marks it: the system's words and the newest messages, so that the
// next call of a turn pays for what is new alone (facts/chats 5.4). Pure; used by stream.ts.
import type { LanguageModelV4Message, LanguageModelV4Prompt } from "@ai-sdk/provider";
import type { ProviderKind } from "#schema/chats/model-provider.ts";

/** The provider takes four marks; two for the history let the next call find the end of this one. */
const NEWEST = 2;
const MARK = { anthropic: { cacheControl: { type: "ephemeral" } } };

/** The same prompt where marks mean nothing. */
export const withCacheMarks = (kind: ProviderKind, prompt: LanguageModelV4Prompt): LanguageModelV4Prompt => {
  if (kind !== "anthropic") return prompt;
  const ends = prompt.flatMap(({ role }, index) => (role === "user" || role === "tool" ? [index] : [])).slice(-NEWEST);
  const system = prompt.findLastIndex(({ role }) => role === "system");
  return prompt.map((message, index): LanguageModelV4Message => {
    if (index !== system && !ends.includes(index)) return message;
    return { ...message, providerOptions: { ...message.providerOptions, ...MARK } };
  });
};
