// Forks a chat: copies another chat up to a message (rules FK-1 to FK-4), with its own history, files, labels and settings. Used by the new
// chat's actor; the source is only read.
import { conflict, notFound } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import { insertChat } from "#db/chats/chats.ts";
import { pinContextOnce } from "#db/chats/context.ts";
import { insertChatFile, listChatFiles } from "#db/chats/files.ts";
import {
  findMessage,
  insertMessages,
  listHistoryUpTo,
  type MessageRow,
  sumHistoryBytesUpTo,
} from "#db/chats/messages.ts";
import { insertAnswer, type RequestKey } from "#db/chats/requests.ts";
import { indexMessages, indexTitle } from "#db/chats/search.ts";
import type { Statement } from "#db/engine/sql.ts";
import { assignSeat, guardUser } from "#db/users/users.ts";
import { MAX_CHECKPOINTS_PER_CHAT } from "#schema/agents/checkpoint.ts";
import type { MessagePart } from "#schema/chats/chat-part.ts";
import { notifyOwner } from "../announce.ts";
import { findFileIds } from "../attach.ts";
import { auditChatCreated } from "../audit.ts";
import type { ChatDeps } from "../deps.ts";
import type { ChatState } from "../machine/chat-state.ts";
import type { Message, PendingCall } from "../machine/decision.ts";
import { toolMessage } from "../machine/draft.ts";
import { updatePendingCalls, updatePendingQuestion } from "../machine/pending.ts";
import type { CopiedMessages } from "../turn/checkpoints.ts";
import { toCreation } from "./create.ts";
import { readChat } from "./read.ts";

export type ForkChat = {
  readonly source_id: string;
  /** The last message to copy; defaults to the newest. */
  readonly message_id?: number | undefined;
  /** Like `message_id`, but may name a message that people do not see. */
  readonly up_to?: number;
  readonly title?: string | undefined;
  /** The workspace of the copy; defaults to the source's. */
  readonly workspace_id?: string;
  /** The coding agent of the copy; defaults to the source's, null for a model. */
  readonly coding_agent?: string | null;
  /** The idempotency key of the request. */
  readonly request?: RequestKey | undefined;
};

type ForkedChat = { readonly state: ChatState; readonly writes: readonly Statement[]; readonly after: () => void };

/** The whole copy is held in memory and committed in one batch. */
const MAX_COPIED_BYTES = 32 * 1024 * 1024;
const TOO_LARGE =
  "The messages of this chat have more than 32 MiB. Copy it up to an earlier message, or start a new chat.";

const NO_RESULT = "The chat was copied before this call had a result.";

/** Rejects with 404 when the chat does not exist or has no such visible message; with 409 when the copied messages are too large. */
export const forkChat = async (deps: ChatDeps, id: string, args: ForkChat): Promise<ForkedChat> => {
  const { store, clock, topics, effects } = deps;
  const found = await readChat(store, args.source_id);
  if (!found) throw notFound();
  const { workspace_id = found.workspace_id, coding_agent = found.coding_agent } = args;
  const source = { ...found, workspace_id, coding_agent };
  const up_to = args.up_to ?? (await findForkEnd(deps, source, args));
  const [{ bytes } = { bytes: 0 }] = await store.scan(sumHistoryBytesUpTo({ chat: source.key, up_to }));
  if (bytes > MAX_COPIED_BYTES) throw conflict(TOO_LARGE);
  const rows = await store.scan(listHistoryUpTo({ chat: source.key, up_to }));
  const namedFileIds = findFileIds(rows);
  const files = (await store.all(listChatFiles({ chat: source.key }))).filter(({ id: file_id }) =>
    namedFileIds.has(file_id),
  );
  const now = clock.now();
  const pendingCalls = findPendingCalls(rows);
  const key = await store.reserve("chats", 1);
  const first_id = await store.reserve("messages", rows.length + pendingCalls.length + 1);
  const newFileIds = new Map(files.map((file) => [file.id, uuid()]));
  const copies: MessageRow[] = [
    ...rows.map((row) => ({ ...row, content: replaceFileIds(row.content, newFileIds) })),
    ...pendingCalls.map((call) => toCancelledResult(call, now)),
  ].map((row, index) => ({ ...row, id: first_id + index, chat: key, revision: 1 }));
  const state = makeState(source, { id, key, first_id, now, title: args.title, copies });
  const { queue: _, pending_calls, ...chat } = state;
  return {
    state,
    writes: [
      guardUser({ id: state.owner_id }),
      insertChat({ ...chat, pending_calls: [...pending_calls] }),
      ...(state.workspace_id === null ? [] : [pinContextOnce(key, state.workspace_id, now)]),
      ...(copies.length === 0 ? [] : [insertMessages(copies)]),
      ...indexMessages(key, copies),
      indexTitle(key, state.title),
      ...(await assignSeat(store, state.owner_id)),
      ...(files.length === 0
        ? []
        : [insertChatFile(files.map((file) => ({ ...file, id: newFileIds.get(file.id) ?? uuid(), chat: key })))]),
      auditChatCreated(state, now),
      ...(args.request ? insertAnswer(key, args.request, { answer: null, now }) : []),
    ],
    after: () => {
      effects.chatCopied(state, { from_chat_id: source.id, messages: pairMessages(rows, copies) });
      effects.searchTextAdded();
      notifyOwner(topics, state, "created");
    },
  };
};

/** Returns the newest user messages, as many as a chat can have checkpoints, each with its ID in the source and in the copy. */
const pairMessages = (rows: readonly MessageRow[], copies: readonly MessageRow[]): CopiedMessages["messages"] =>
  rows
    .flatMap(({ id, role }, index) =>
      role === "user" ? [{ from_message_id: id, message_id: copies[index]?.id ?? 0 }] : [],
    )
    .slice(-MAX_CHECKPOINTS_PER_CHAT);

const findForkEnd = async ({ store }: ChatDeps, { key }: ChatState, { message_id }: ForkChat): Promise<number> => {
  if (message_id === undefined) return Number.MAX_SAFE_INTEGER;
  const found = await store.get(findMessage({ chat: key, id: message_id }));
  if (!found || found.deleted || found.visibility === "model") throw notFound();
  return message_id;
};

/** Replaces file IDs with the IDs of the copied files, also in tool results. */
const replaceFileIds = (content: MessagePart[], newFileIds: ReadonlyMap<string, string>): MessagePart[] => {
  if (newFileIds.size === 0) return content;
  const text = JSON.stringify(content).replaceAll(
    /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g,
    (id) => newFileIds.get(id) ?? id,
  );
  return JSON.parse(text) as MessagePart[];
};

const toMessage = ({ usage, ...row }: MessageRow): Message => ({ ...row, usage });

const findPendingCalls = (rows: readonly MessageRow[]): readonly PendingCall[] =>
  rows.reduce<readonly PendingCall[]>((pending, row) => updatePendingCalls(pending, toMessage(row)), []);

const toCancelledResult = ({ tool_call_id, tool_name }: PendingCall, now: number): MessageRow => {
  const { content, ...message } = toolMessage({
    tool_call_id,
    tool_name,
    result: { error: NO_RESULT },
    is_error: true,
    now,
  });
  return {
    ...message,
    content: [...content],
    usage: null,
    replayed: null,
    custom_prompt: null,
    id: 0,
    chat: 0,
    revision: 1,
    deleted: false,
    created_at: now,
  };
};

type ForkFields = {
  readonly id: string;
  readonly key: number;
  readonly first_id: number;
  readonly now: number;
  readonly title: string | undefined;
  readonly copies: readonly MessageRow[];
};

/** The copy is idle, and marked as read, because its creator has seen the content. */
const makeState = (source: ChatState, { id, title, copies, ...numbers }: ForkFields): ChatState => {
  const { state } = toCreation({ chat: { ...source, id, title: title ?? source.title }, messages: [] }, numbers);
  const lastAnswerId =
    copies.findLast(({ role, visibility }) => role === "assistant" && visibility !== "model")?.id ?? 0;
  const agent_session = copyChoices(source);
  const asked_by = copies.reduce<string | null>(
    (requested, row) => updatePendingQuestion(requested, toMessage(row)),
    null,
  );
  const ownFields = {
    id,
    key: numbers.key,
    agent_session,
    last_assistant_id: lastAnswerId,
    asked_by,
    read_cursor: lastAnswerId,
  };
  return { ...state, ...RESET_FIELDS, ...ownFields, status: "waiting" };
};

/** Keeps the chosen options of the coding agent. The session itself stays with the source, so the copy starts a new one. */
const copyChoices = ({ agent_session }: ChatState): ChatState["agent_session"] =>
  agent_session && { ...agent_session, session_id: "", through: 0 };

/** Fields that are reset in the copy. */
const RESET_FIELDS = {
  parent_chat_id: null,
  root_chat_id: null,
  pin_order: 0,
  archived: false,
  pending_calls: [],
  last_error: null,
  retry_state: null,
  requires_action_deadline: null,
  budget_pause: null,
  compaction: null,
} satisfies Partial<ChatState>;
