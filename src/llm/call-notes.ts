// Notes in a call's result for the model about its arguments, stored with the call and hidden from everyone else. Pure.
import type { MessagePart } from "#schema/chats/chat-part.ts";
import type { ProviderMetadata } from "./model.ts";

const KEY = "slipway_call";
const MOST = 500;

export const formatNote = (sentences: readonly string[]): string => sentences.join(" ").slice(0, MOST);

export const withNote = (metadata: ProviderMetadata | undefined, note: string): ProviderMetadata => ({
  ...metadata,
  [KEY]: { note },
});

/** Returns undefined if there is no note. */
export const noteIn = ({ provider_metadata }: Pick<MessagePart, "provider_metadata">): string | undefined => {
  const note = provider_metadata?.[KEY]?.note;
  return typeof note === "string" ? note : undefined;
};

/** Returns the metadata to send back to the provider. */
export const withoutNote = (metadata: ProviderMetadata): ProviderMetadata => {
  const { [KEY]: _, ...own } = metadata;
  return own;
};
