// What a chat's rows must be after a kill, whatever went on: seen in a copy of the database and compared with the books of those who
// wrote, and with what was there after the kill before. Used by server-chats.ts.
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { lookIntoCopy } from "../oracle/database.ts";
import { MESSAGE } from "./server-chats-model.ts";
import type { ChatBook, Said } from "./server-chats-people.ts";

type ChatLine = {
  key: number;
  id: string;
  status: string;
  archived: number;
  requires_action_deadline: number | null;
  pending_calls: string;
  snapshot_version: number;
  history_version: number;
  queue_version: number;
  retry_version: number;
  generation_attempt: number;
};
type Line = { id: number; revision: number; deleted: number; role: string; content: string };
type QueueLine = { id: number; position: number; content: string };

/** A chat as it is stored. */
export type StoredChat = { readonly chat: ChatLine; readonly messages: Line[]; readonly queue: QueueLine[] };

const readOne = (db: Database, id: string): StoredChat | undefined => {
  const chat = db.query<ChatLine, [string]>("select * from chats where id = ?").get(id);
  if (!chat) return undefined;
  const messages = db.query<Line, [number]>("select * from messages where chat = ? order by id").all(chat.key);
  const queue = db.query<QueueLine, [number]>("select * from queued_messages where chat = ? order by position");
  return { chat, messages, queue: queue.all(chat.key) };
};

/** These chats, from a copy. No server may be writing. */
export const storedChats = (directory: string, ids: readonly string[]): Map<string, StoredChat> =>
  lookIntoCopy(directory, (db) => {
    const found = ids.flatMap((id): [string, StoredChat][] => {
      const one = readOne(db, id);
      return one ? [[id, one]] : [];
    });
    return new Map(found);
  });

/** Asks the database of a living server, beside it. */
export const peek = <T>(directory: string, look: (db: Database) => T): T => {
  using db = new Database(join(directory, "slipway.db"), { readonly: true });
  return look(db);
};

export type Owed = Pick<ChatLine, "id" | "status" | "history_version" | "generation_attempt">;

/** True when what a chat owed has gone on: a new attempt, another history, or the end of its interruption. */
export const hasGoneOn = (db: Database, { id, status, history_version, generation_attempt }: Owed): boolean => {
  const now = db
    .query<Owed, [string]>("select id, status, history_version, generation_attempt from chats where id = ?")
    .get(id);
  if (!now || now.history_version !== history_version) return true;
  if (status === "running") return now.status !== status || now.generation_attempt > generation_attempt;
  return now.status !== status;
};

/** Lets the deadline of a chat that awaits results come within `ms` from now. No server may run on this directory. */
export const bringDeadlineNear = (directory: string, id: string, ms: number): void => {
  using db = new Database(join(directory, "slipway.db"));
  const due = Date.now() + ms;
  db.run("update chats set requires_action_deadline = ? where id = ?", [due, id]);
  db.run("update timers set due = ? where actor = 'chat' and actor_id = ? and name = 'deadline'", [due, id]);
};

/** What is wrong with the rows of one chat. `before` is what they were when somebody last looked. */
export const chatProblems = (book: ChatBook, now: StoredChat | undefined, before: StoredChat | undefined): string[] => {
  if (!now) return [`chat ${book.id} is gone`];
  const problems = [...rowProblems(now), ...(before ? changeProblems(before, now) : []), ...bookProblems(book, now)];
  return problems.map((problem) => `chat ${book.id} (${now.chat.status}): ${problem}`);
};

const rowProblems = ({ chat, messages, queue }: StoredChat): string[] => {
  const wrong: string[] = [];
  const versions = [chat.history_version, chat.queue_version, chat.retry_version, ...messages.map((m) => m.revision)];
  if (versions.some((version) => version > chat.snapshot_version)) wrong.push("a version is ahead of the snapshot's");
  if (new Set(queue.map(({ position }) => position)).size < queue.length) wrong.push("two messages at one position");
  if (queue.length > 20) wrong.push(`${queue.length} messages wait`);
  const calls = JSON.parse(chat.pending_calls) as unknown[];
  const awaits = chat.status === "requires_action";
  if (awaits !== (chat.requires_action_deadline !== null)) wrong.push("the deadline does not fit the status");
  if (awaits && calls.length === 0) wrong.push("results are awaited and there are no calls");
  if (chat.archived && chat.status !== "waiting" && chat.status !== "error") wrong.push("archived and active");
  return wrong;
};

/** Versions only grow, a message stays what it was, and nothing but the mark of being deleted comes to it. */
const changeProblems = (before: StoredChat, now: StoredChat): string[] => {
  const wrong: string[] = [];
  for (const name of ["snapshot_version", "history_version", "queue_version", "retry_version"] as const) {
    if (now.chat[name] < before.chat[name]) wrong.push(`${name} went from ${before.chat[name]} to ${now.chat[name]}`);
  }
  const byId = new Map(now.messages.map((one) => [one.id, one]));
  for (const { id, content, deleted } of before.messages) {
    const found = byId.get(id);
    if (found?.content !== content) wrong.push(`message ${id} is no longer what it was`);
    else if (deleted && !found.deleted) wrong.push(`message ${id} came back`);
  }
  return wrong;
};

const textOf = (content: string): string => content.match(MESSAGE)?.[0] ?? "";

const bookProblems = (book: ChatBook, { messages, queue }: StoredChat): string[] => {
  const wrong: string[] = [];
  const users = messages.filter(({ role }) => role === "user");
  const places = [...users, ...queue].map(({ id, content }) => ({ id, text: textOf(content) }));
  const count = Map.groupBy(places, ({ text }) => text);
  for (const said of book.said) {
    const found = count.get(said.text) ?? [];
    const problem = fateProblem(book, said, found.length);
    if (problem) wrong.push(`${JSON.stringify(said)} ${problem}`);
    if (said.id !== undefined && found[0] && found[0].id !== said.id) {
      wrong.push(`${said.text} was answered with the number ${said.id} and has ${found[0].id}`);
    }
  }
  if (book.isOrderly) wrong.push(...orderProblems(book, places));
  return wrong;
};

const fateProblem = (book: ChatBook, said: Said, times: number): string | undefined => {
  if (times > 1) return `is there ${times} times`;
  if (said.fate === "refused" && times > 0) return "is there all the same";
  if (said.fate !== "acknowledged") return undefined;
  const isDeleted = said.queued !== undefined && book.deleted.get(said.queued) === true;
  if (isDeleted && times > 0) return "was deleted from the queue and is there";
  return times === 0 && !book.mayBeGone(said) ? "is not there" : undefined;
};

/** The messages of each person stand in the order in which they were sent. */
const orderProblems = (book: ChatBook, places: readonly { text: string }[]): string[] => {
  const place = new Map(places.map(({ text }, index) => [text, index]));
  const last = new Map<string, number>();
  return book.said.flatMap(({ by, text }) => {
    const at = place.get(text);
    if (at === undefined) return [];
    const isLate = at < (last.get(by) ?? -1);
    last.set(by, at);
    return isLate ? [`${text} stands before an earlier message of the same person`] : [];
  });
};
