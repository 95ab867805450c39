// Chats, models and texts as people name them.
import { usageError } from "#base/usage-error.ts";
import type { Chat } from "#schema/chats/chat.ts";
import type { Client } from "#src/client.ts";
import { allInput } from "../../ask.ts";
import { orAsked } from "../../asked.ts";
import { VerbFailure } from "../../failure.ts";
import { getStreams } from "../../streams.ts";
import { plain } from "../../text.ts";
import type { VerbInput } from "../../verb.ts";

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** How many chats are searched for the prefix of an ID: the most recently active ones. */
const RECENT = 200;

/** The chat of an id or of its beginning. Throws VerbFailure when none or several are meant. */
export const chatNamed = async (client: Client, name: string): Promise<Chat> => {
  if (UUID.test(name)) return client.get(`/api/v2/chats/${name.toLowerCase()}`);
  const recent = await client.get(`/api/v2/chats?limit=${RECENT}`);
  const all = recent.flatMap((chat) => [chat, ...(chat.children as Chat[])]);
  const [found, more] = all.filter(({ id }) => id.startsWith(name.toLowerCase()));
  if (!found) throw new VerbFailure(`there is no chat ${name}. \`slipway chat list\` lists yours.`);
  if (more) throw new VerbFailure(`several chats match ${name}`);
  return found;
};

/** The same, asked for at a terminal where it was left out. */
export const chatAsked = async (input: VerbInput, client: Client, word: string | undefined): Promise<Chat> =>
  chatNamed(client, await orAsked(input, word, "Chat", () => recentChats(client)));

/** The beginnings of the ids of the chats that moved last, each with its title. */
const recentChats = async (client: Client): Promise<string[]> => {
  const chats = await client.get("/api/v2/chats?limit=10");
  return chats.map(({ id, title }) => `${id.slice(0, 8)} ${Bun.sliceAnsi(title, 0, 30, { ellipsis: "…" })}`);
};

/** The id of a model by its name or what it is shown as. Throws VerbFailure that names those there are. */
export const modelNamed = async (client: Client, name: string): Promise<string> => {
  const { providers } = await client.get("/api/v2/chats/models");
  const models = providers.flatMap(({ models }) => models);
  const [found, more] = models.filter((one) => one.model === name || one.display_name === name || one.id === name);
  if (found && !more) return found.id;
  const names = models.map(({ model, id }) => `${plain(model)} (${id})`).join(", ");
  throw new VerbFailure(
    found ? `several models are named ${name}: ${names}` : `there is no model ${name}; there are ${names}`,
  );
};

/** What is to be said: the words, or what comes in where none exist. Throws UsageError when nothing does. */
export const readPrompt = async (input: VerbInput, words: readonly string[]): Promise<string> => {
  const isPiped = words.length === 0 || (words.length === 1 && words[0] === "-");
  if (!isPiped) return words.join(" ");
  const streams = getStreams(input);
  const text = streams.inputIsTerminal ? await orAsked(input, undefined, "Message") : await allInput(streams);
  if (text.trim() === "") throw usageError("chat", "expected a message, as arguments or from a pipe");
  return text;
};
