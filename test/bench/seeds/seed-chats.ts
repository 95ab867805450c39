// Fills a data directory with chats and messages, written with the product's own statements while no server is running. For the benchmark
// `chats-at-scale`, or manually: bun test/bench/seeds/seed-chats.ts --dir DIR --chats 50000 --messages 2000000. Needs a first user.
import { parseArgs } from "node:util";
import { systemClock } from "#base/clock.ts";
import { uuid } from "#base/ids.ts";
import { insertChat } from "#db/chats/chats.ts";
import { insertMessages } from "#db/chats/messages.ts";
import { indexMessages, indexTitle, mergeSearch, readSegments, SEARCH_TABLES } from "#db/chats/search.ts";
import { type LocalStore, openLocalStore } from "#db/engine/local.ts";
import type { Statement } from "#db/engine/sql.ts";

export type SeededChats = {
  /** The chat with `LONG_CHAT_MESSAGES` messages. */
  readonly long_id: string;
  /** The ID of a message in the middle of that chat. */
  readonly middle: number;
  /** A word that one message in a hundred contains. */
  readonly word: string;
  readonly seconds: number;
};

const LONG_CHAT_MESSAGES = 5_000;
const WORDS_PER_MESSAGE = 40;
const MESSAGES_PER_COMMIT = 2_000;
/** Every hundredth message contains this word, so that at least a quarter of the chats contain it. */
const SEARCH_WORD = "walrus";

const vocabulary = Array.from({ length: 20_000 }, (_, index) => `w${index.toString(36)}`);
let state = 42;
const random = (): number => {
  state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
  return state / 0x7fffffff;
};
/** Returns a random message: a few words are frequent and most are rare. */
const createMessage = (): string =>
  Array.from({ length: WORDS_PER_MESSAGE }, () => vocabulary[Math.floor(random() ** 3 * vocabulary.length)]).join(" ");

/** Creates chats of the first user. The last chat is the newest and is long. */
export const seedChats = async (directory: string, chats: number, messages: number): Promise<SeededChats> => {
  const startedAt = performance.now();
  const now = systemClock.now();
  const fatal = (error: Error): never => {
    throw error;
  };
  const store = openLocalStore({ directory, cacheMb: 256, now, fatal });
  try {
    const [member] = await store.scan({
      sql: "select user_id, organization_id from organization_members limit 1",
      params: [],
      map: ([owner_id, organization_id]) => ({ owner_id: String(owner_id), organization_id: String(organization_id) }),
    });
    if (!member) throw new Error(`${directory} has no user yet: start the server once`);
    const messagesPerChat = Math.max(1, Math.floor((messages - LONG_CHAT_MESSAGES) / (chats - 1)));
    let longChat = { id: "", first: 0 };
    let batch: Statement[] = [];
    let pendingCount = 0;
    for (let index = 0; index < chats; index++) {
      const count = index === chats - 1 ? LONG_CHAT_MESSAGES : messagesPerChat;
      const key = await store.reserve("chats", 1);
      const first = await store.reserve("messages", count);
      const id = uuid();
      longChat = { id, first };
      batch.push(...toChatStatements(member, { id, key, first, count, at: now - (chats - index) * 1_000 }));
      pendingCount += count;
      if (pendingCount < MESSAGES_PER_COMMIT && index < chats - 1) continue;
      await store.commit(batch);
      batch = [];
      pendingCount = 0;
      if (index % 1_000 < 50) await mergeSearchTables(store);
    }
    await mergeSearchTables(store);
    const seconds = (performance.now() - startedAt) / 1_000;
    return { long_id: longChat.id, middle: longChat.first + LONG_CHAT_MESSAGES / 2, word: SEARCH_WORD, seconds };
  } finally {
    await store.close();
  }
};

type SeedChat = { id: string; key: number; first: number; count: number; at: number };

const toChatStatements = (member: { owner_id: string; organization_id: string }, seed: SeedChat): Statement[] => {
  const { id, key, first, count, at } = seed;
  const title = `Chat ${key}`;
  const rows = Array.from({ length: count }, (_, index) => {
    const message = createMessage();
    const text = (first + index) % 100 === 0 ? `${message} ${SEARCH_WORD}` : message;
    return {
      id: first + index,
      chat: key,
      revision: 1,
      created_at: at,
      created_by: null,
      model_config_id: null,
      role: index % 2 === 0 ? ("user" as const) : ("assistant" as const),
      visibility: "both" as const,
      content: [{ type: "text" as const, text }],
      usage: null,
    };
  });
  return [
    insertChat({
      ...member,
      id,
      key,
      title,
      client_type: "api",
      status: "waiting",
      last_model_config_id: "00000000-0000-4000-8000-0000000000d0",
      created_at: at,
      updated_at: at,
      snapshot_version: 1,
      history_version: 1,
      last_assistant_id: rows.findLast(({ role }) => role === "assistant")?.id ?? 0,
    }),
    insertMessages(rows),
    ...indexMessages(key, rows),
    indexTitle(key, title),
  ];
};

const mergeSearchTables = async (store: LocalStore): Promise<void> => {
  for (const table of SEARCH_TABLES) {
    for (let segmentsBefore = ""; ; ) {
      await store.commit([mergeSearch(table)]);
      const segments = (await store.get(readSegments(table))) ?? "";
      if (segments === segmentsBefore) break;
      segmentsBefore = segments;
    }
  }
};

if (import.meta.main) {
  const { values } = parseArgs({
    options: { dir: { type: "string" }, chats: { type: "string" }, messages: { type: "string" } },
  });
  if (!values.dir) throw new Error("--dir DIR is needed: a data directory with a first user");
  const seeded = await seedChats(values.dir, Number(values.chats ?? 50_000), Number(values.messages ?? 2_000_000));
  process.stdout.write(`${JSON.stringify(seeded)}\n`);
}
