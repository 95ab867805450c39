// Converts a transition to the statements that store it: the difference between both states, as one batch. Pure.

import { movePin, pinChat, saveExecution, unpinChat, updateChat } from "#db/chats/chats.ts";
import { deleteMessagesFrom, deleteQueued, insertMessages, insertQueued, updateQueued } from "#db/chats/messages.ts";
import { indexMessages, indexTitle, unindexMessagesFrom } from "#db/chats/search.ts";
import type { Statement } from "#db/engine/sql.ts";
import { clearTimer, setTimer } from "#db/engine/timers.ts";
import type { ChatState } from "../machine/chat-state.ts";
import type { Change, Message, QueueItem } from "../machine/decision.ts";
import type { ChatPatch } from "../messages.ts";

/** Returns the batch of one or more transitions from `before` to the state of `change`. */
export const buildWrites = (before: ChatState, { state, inserted, deleted_from }: Change<ChatState>): Statement[] => [
  saveExecution(before.id, before.snapshot_version, { ...state, pending_calls: [...state.pending_calls] }),
  ...(deleted_from === null
    ? []
    : [
        deleteMessagesFrom({ chat: before.key, from: deleted_from, revision: state.snapshot_version }),
        unindexMessagesFrom(before.key, deleted_from),
      ]),
  ...toMessageWrites(before.key, inserted),
  ...toQueueWrites(before, state),
  ...toDeadlineWrites(before, state),
];

/** Returns the writes for new messages, including their search index entries (rule FS-1). `chat` is the key. */
export const toMessageWrites = (chat: number, messages: readonly Message[]): Statement[] =>
  messages.length === 0
    ? []
    : [insertMessages(messages.map((row) => toMessageRow(chat, row))), ...indexMessages(chat, messages)];

/** Returns a history row as it is stored. */
export const toMessageRow = (chat: number, { content, usage, ...row }: Message) => ({
  ...row,
  chat,
  content: [...content],
  usage: usage as Record<string, number> | null,
});

const toQueueWrites = ({ key, queue }: ChatState, { queue: next }: ChatState): Statement[] => {
  if (queue === next) return [];
  const old = new Map(queue.map((row) => [row.id, row]));
  const kept = new Set(next.map(({ id }) => id));
  const added: QueueItem[] = next.filter(({ id }) => !old.has(id));
  const moved = next.filter(({ id, position }) => old.has(id) && old.get(id)?.position !== position);
  return [
    ...queue.filter(({ id }) => !kept.has(id)).map(({ id }) => deleteQueued(id)),
    ...moved.map(({ id, position }) => updateQueued(id, { position }, { expect: 1 })),
    ...(added.length === 0
      ? []
      : [insertQueued(added.map((row) => ({ ...row, content: [...row.content], chat: key })))]),
  ];
};

const toDeadlineWrites = (
  { id, requires_action_deadline: before }: ChatState,
  { requires_action_deadline: next }: ChatState,
): Statement[] => {
  if (before === next) return [];
  return [next === null ? clearTimer("chat", id, "deadline") : setTimer("chat", id, "deadline", next)];
};

/** Combines two transitions into one commit. */
export const combineChanges = (first: Change<ChatState>, second: Change<ChatState>): Change<ChatState> => ({
  ...second,
  inserted: [...first.inserted, ...second.inserted],
  promoted: [...first.promoted, ...second.promoted],
  deleted_from: first.deleted_from ?? second.deleted_from,
  effects: second.effects,
});

/** Returns the writes for metadata. The title is also added to the search index. */
export const toPatchWrites = ({ id, key }: ChatState, patch: ChatPatch): Statement[] => [
  ...(Object.keys(patch).length === 0 ? [] : [updateChat(id, patch, { expect: 1 })]),
  ...(patch.title === undefined ? [] : [indexTitle(key, patch.title)]),
];

/** In memory, `pin_order` only says whether the chat is pinned, because its position changes with other chats. */
export const buildPinWrites = ({ id, owner_id, pin_order }: ChatState, pin: number): Statement[] => {
  if (pin === 0) return unpinChat(id, owner_id);
  return pin_order === 0 ? pinChat(id, owner_id) : movePin(id, owner_id, pin);
};
