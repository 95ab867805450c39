// Notes in a call's result for the model about its arguments, stored with the call and hidden from everyone else. Pure.
import type { MessagePart } from "#schema/chats/chat-part.ts";
import type { ProviderMetadata } from "./model.ts";

const NOTE_KEY = "slipway_call";
const MAX_NOTE_CHARS = 500;

export const formatNote = (sentences: readonly string[]): string => sentences.join(" ").slice(0, MAX_NOTE_CHARS);

export const addNote = (metadata: ProviderMetadata | undefined, note: string): ProviderMetadata => ({
  ...metadata,
  [NOTE_KEY]: { note },
});

/** Returns undefined if there is no note. */
export const getNote = ({ provider_metadata }: Pick<MessagePart, "provider_metadata">): string | undefined => {
  const note = provider_metadata?.[NOTE_KEY]?.note;
  return typeof note === "string" ? note : undefined;
};

/** Returns the metadata to send back to the provider. */
export const removeNote = (metadata: ProviderMetadata): ProviderMetadata => {
  const { [NOTE_KEY]: _, ...own } = metadata;
  return own;
};
