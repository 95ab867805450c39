// What a call's result tells the model about its arguments, kept with the call and hidden from everyone else. Pure.
import type { MessagePart } from "#schema/chats/chat-part.ts";
import type { ProviderMetadata } from "./model.ts";

const KEY = "slipway_call";
const MOST = 500;

export const formatNote = (sentences: readonly string[]): string => sentences.join(" ").slice(0, MOST);

export const withNote = (metadata: ProviderMetadata | undefined, note: string): ProviderMetadata => ({
  ...metadata,
  [KEY]: { note },
});

/** Undefined where there is nothing to tell. */
export const noteIn = ({ provider_metadata }: Pick<MessagePart, "provider_metadata">): string | undefined => {
  const note = provider_metadata?.[KEY]?.note;
  return typeof note === "string" ? note : undefined;
};

/** What the provider itself is to get back. */
export const withoutNote = (metadata: ProviderMetadata): ProviderMetadata => {
  const { [KEY]: _, ...own } = metadata;
  return own;
};
