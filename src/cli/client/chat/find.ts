// Finds chats and models by name or ID, and reads prompts.
import { isUuid } from "#base/ids.ts";
import { usageError } from "#base/usage-error.ts";
import type { Chat } from "#schema/chats/chat.ts";
import type { Client } from "#src/client.ts";
import { readAllInput } from "../../ask.ts";
import { VerbFailure } from "../../failure.ts";
import { promptIfMissing } from "../../missing-arguments.ts";
import { getStreams } from "../../streams.ts";
import { toPlainLine } from "../../text.ts";
import type { VerbInput } from "../../verb.ts";

/** Number of chats searched for an ID prefix: the most recently active ones. */
const MAX_RECENT_CHATS = 200;

/** Returns the chat with this ID or ID prefix. Throws VerbFailure if none or several match. */
export const getChat = async (client: Client, name: string): Promise<Chat> => {
  if (isUuid(name)) return client.get(`/api/v2/chats/${name.toLowerCase()}`);
  const recent = await client.get(`/api/v2/chats?limit=${MAX_RECENT_CHATS}`);
  const all = recent.flatMap((chat) => [chat, ...(chat.children as Chat[])]);
  const [found, more] = all.filter(({ id }) => id.startsWith(name.toLowerCase()));
  if (!found) throw new VerbFailure(`there is no chat ${name}. \`slipway chat list\` lists yours.`);
  if (more) throw new VerbFailure(`several chats match ${name}`);
  return found;
};

/** Like getChat, but prompts for a missing ID on a terminal. */
export const selectChat = async (input: VerbInput, client: Client, word: string | undefined): Promise<Chat> =>
  getChat(client, await promptIfMissing(input, word, "Chat", () => listRecentChats(client)));

/** Returns the ID prefixes and titles of the most recently active chats. */
const listRecentChats = async (client: Client): Promise<string[]> => {
  const chats = await client.get("/api/v2/chats?limit=10");
  return chats.map(({ id, title }) => `${id.slice(0, 8)} ${Bun.sliceAnsi(title, 0, 30, { ellipsis: "…" })}`);
};

/** Returns the ID of the model with this name or display name. Throws VerbFailure with a list of models if none exists. */
export const getModel = async (client: Client, name: string): Promise<string> => {
  const { providers } = await client.get("/api/v2/chats/models");
  const models = providers.flatMap(({ models }) => models);
  const [found, more] = models.filter((one) => one.model === name || one.display_name === name || one.id === name);
  if (found && !more) return found.id;
  const names = models.map(({ model, id }) => `${toPlainLine(model)} (${id})`).join(", ");
  throw new VerbFailure(
    found ? `several models are named ${name}: ${names}` : `there is no model ${name}; there are ${names}`,
  );
};

/** Returns the prompt from the arguments, or from standard input if none exist. Throws UsageError if both are empty. */
export const readPrompt = async (input: VerbInput, words: readonly string[]): Promise<string> => {
  const isPiped = words.length === 0 || (words.length === 1 && words[0] === "-");
  if (!isPiped) return words.join(" ");
  const streams = getStreams(input);
  const text = streams.inputIsTerminal
    ? await promptIfMissing(input, undefined, "Message")
    : await readAllInput(streams);
  if (text.trim() === "") throw usageError("chat", "expected a message, as arguments or from a pipe");
  return text;
};
