// Checks the rows of a chat after a kill: compares the database with the writers' records, and with the state after the previous kill. Used
// by server-chats.ts.
import { openStoredData, type StoredData } from "#test/support/stored.ts";
import { withStored } from "../oracle/database.ts";
import { MESSAGE } from "./server-chats-model.ts";
import type { ChatBook, SentMessage } from "./server-chats-people.ts";

type ChatRow = {
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
type MessageRow = { id: number; revision: number; deleted: number; role: string; content: string };
type QueueRow = { id: number; position: number; content: string };

/** A chat as stored. */
export type StoredChat = { readonly chat: ChatRow; readonly messages: MessageRow[]; readonly queue: QueueRow[] };

const readChat = async (stored: StoredData, id: string): Promise<StoredChat | undefined> => {
  const [chat] = await stored.objects<ChatRow>(`select * from chats where id = '${id}'`);
  if (!chat) return undefined;
  const messages = await stored.objects<MessageRow>(`select * from messages where chat = ${chat.key} order by id`);
  const queue = `select * from queued_messages where chat = ${chat.key} order by position`;
  return { chat, messages, queue: await stored.objects<QueueRow>(queue) };
};

/** Returns these chats. No server may be writing. */
export const loadStoredChats = (directory: string, ids: readonly string[]): Promise<Map<string, StoredChat>> =>
  withStored(directory, async (stored) => {
    const chats = new Map<string, StoredChat>();
    for (const id of ids) {
      const chat = await readChat(stored, id);
      if (chat) chats.set(id, chat);
    }
    return chats;
  });

export type PendingChat = Pick<ChatRow, "id" | "status" | "history_version" | "generation_attempt">;

/** Returns true if a chat's pending work has continued: it has a new attempt, a changed history, or its interruption has ended. */
const hasContinued = (
  { status, history_version, generation_attempt }: PendingChat,
  now: PendingChat | undefined,
): boolean => {
  if (!now || now.history_version !== history_version) return true;
  if (status === "running") return now.status !== status || now.generation_attempt > generation_attempt;
  return now.status !== status;
};

/** Returns the chats whose work has not continued. Reads the database next to a running server. */
export const findStalled = async (directory: string, pending: readonly PendingChat[]): Promise<PendingChat[]> => {
  await using stored = await openStoredData(directory);
  const rows = await stored.objects<PendingChat>("select id, status, history_version, generation_attempt from chats");
  const now = new Map(rows.map((row) => [row.id, row]));
  return pending.filter((chat) => !hasContinued(chat, now.get(chat.id)));
};

/** Makes the deadline of a chat that awaits results due within `ms` from now. No server may run on this directory. */
export const expediteDeadline = async (directory: string, id: string, ms: number): Promise<void> => {
  await using stored = await openStoredData(directory);
  const due = Date.now() + ms;
  await stored.run(`update chats set requires_action_deadline = ${due} where id = '${id}'`);
  await stored.run(`update timers set due = ${due} where actor = 'chat' and actor_id = '${id}' and name = 'deadline'`);
};

/** Returns problems in the rows of one chat. `before` is its state at the last check. */
export const findChatProblems = (
  book: ChatBook,
  now: StoredChat | undefined,
  before: StoredChat | undefined,
): string[] => {
  if (!now) return [`chat ${book.id} was lost`];
  const problems = [
    ...findRowProblems(now),
    ...(before ? findChangeProblems(before, now) : []),
    ...findBookProblems(book, now),
  ];
  return problems.map((problem) => `chat ${book.id} (${now.chat.status}): ${problem}`);
};

const findRowProblems = ({ chat, messages, queue }: StoredChat): string[] => {
  const failures: string[] = [];
  const versions = [
    chat.history_version,
    chat.queue_version,
    chat.retry_version,
    ...messages.map(({ revision }) => revision),
  ];
  if (versions.some((version) => version > chat.snapshot_version))
    failures.push("a version is ahead of the snapshot's");
  if (new Set(queue.map(({ position }) => position)).size < queue.length)
    failures.push("two messages have the same position");
  if (queue.length > 20) failures.push(`${queue.length} messages are queued`);
  const calls = JSON.parse(chat.pending_calls) as unknown[];
  const awaits = chat.status === "requires_action";
  if (awaits !== (chat.requires_action_deadline !== null)) failures.push("the deadline does not match the status");
  if (awaits && calls.length === 0) failures.push("results are awaited, but there are no calls");
  if (chat.archived && chat.status !== "waiting" && chat.status !== "error")
    failures.push("the chat is archived and active");
  return failures;
};

/** Returns problems between two states: versions only grow, and messages are immutable except for the deletion mark. */
const findChangeProblems = (before: StoredChat, now: StoredChat): string[] => {
  const failures: string[] = [];
  for (const name of ["snapshot_version", "history_version", "queue_version", "retry_version"] as const) {
    if (now.chat[name] < before.chat[name])
      failures.push(`${name} went from ${before.chat[name]} to ${now.chat[name]}`);
  }
  const byId = new Map(now.messages.map((message) => [message.id, message]));
  for (const { id, content, deleted } of before.messages) {
    const current = byId.get(id);
    if (current?.content !== content) failures.push(`message ${id} has changed`);
    else if (deleted && !current.deleted) failures.push(`message ${id} is no longer deleted`);
  }
  return failures;
};

const extractMessage = (content: string): string => content.match(MESSAGE)?.[0] ?? "";

const findBookProblems = (book: ChatBook, { messages, queue }: StoredChat): string[] => {
  const failures: string[] = [];
  const users = messages.filter(({ role }) => role === "user");
  const rows = [...users, ...queue].map(({ id, content }) => ({ id, text: extractMessage(content) }));
  const byText = Map.groupBy(rows, ({ text }) => text);
  for (const message of book.sent) {
    const matches = byText.get(message.text) ?? [];
    const problem = findOutcomeProblem(book, message, matches.length);
    if (problem) failures.push(`${JSON.stringify(message)} ${problem}`);
    if (message.id !== undefined && matches[0] && matches[0].id !== message.id) {
      failures.push(`${message.text} was acknowledged with the ID ${message.id} and has the ID ${matches[0].id}`);
    }
  }
  if (book.isOrderly) failures.push(...findOrderProblems(book, rows));
  return failures;
};

const findOutcomeProblem = (book: ChatBook, message: SentMessage, count: number): string | undefined => {
  if (count > 1) return `exists ${count} times`;
  if (message.outcome === "refused" && count > 0) return "was refused, but exists";
  if (message.outcome !== "acknowledged") return undefined;
  const isDeleted = message.queued !== undefined && book.deleted.get(message.queued) === true;
  if (isDeleted && count > 0) return "was deleted from the queue, but exists";
  return count === 0 && !book.canBeMissing(message) ? "is missing" : undefined;
};

/** Returns problems with the order: each person's messages must be in the order in which they were sent. */
const findOrderProblems = (book: ChatBook, rows: readonly { text: string }[]): string[] => {
  const order = new Map(rows.map(({ text }, index) => [text, index]));
  const lastPositions = new Map<string, number>();
  return book.sent.flatMap(({ person, text }) => {
    const position = order.get(text);
    if (position === undefined) return [];
    const isLate = position < (lastPositions.get(person) ?? -1);
    lastPositions.set(person, position);
    return isLate ? [`${text} is before an earlier message of the same person`] : [];
  });
};
