// The messages of a task: its chat's, or, before the chat exists, the messages that an agent in its workspace left.
import { toRfc3339 } from "#base/clock.ts";
import { findChatAccessRow } from "#db/chats/chats.ts";
import { listMessages, listNewestMessages, type MessageRow } from "#db/chats/messages.ts";
import type { TaskRow } from "#db/tasks/tasks.ts";
import type { TaskLog, TaskLogs } from "#schema/tasks/task.ts";
import type { DomainContext } from "../context.ts";

const END = Number.MAX_SAFE_INTEGER;

type Cursor = { readonly after: number | undefined; readonly limit: number };

/** Returns the newest entries; with `after`, the oldest ones since that entry. */
export const loadTaskLogs = async (
  { store }: DomainContext,
  task: TaskRow,
  { after, limit }: Cursor,
): Promise<TaskLogs> => {
  const chat = await store.get(findChatAccessRow({ id: task.chat_id }));
  if (!chat) return toSnapshotFields(task);
  const range = { chat: chat.key, before: END, revision: END, limit };
  const rows =
    after === undefined
      ? (await store.scan(listNewestMessages({ ...range, after: 0 }))).reverse()
      : await store.scan(listMessages({ ...range, after }));
  const logs = rows.flatMap(toLogEntry);
  return { count: logs.length, logs };
};

const toLogEntry = ({ id, role, content, created_at }: MessageRow): TaskLog[] => {
  if (role !== "user" && role !== "assistant") return [];
  const text = content.flatMap((part) => (part.type === "text" && part.text ? [part.text] : [])).join("\n");
  if (text.trim() === "") return [];
  return [{ id, content: text, type: role === "user" ? "input" : "output", time: toRfc3339(created_at) }];
};

type SnapshotMessage = {
  readonly id?: unknown;
  readonly content?: unknown;
  readonly role?: unknown;
  readonly time?: unknown;
};

const toSnapshotFields = ({ snapshot, created_at }: TaskRow): TaskLogs => {
  if (!snapshot) return { count: 0, logs: [] };
  const logs = snapshot.messages.flatMap((message, index): TaskLog[] => {
    const { id, content, role, time } = (message ?? {}) as SnapshotMessage;
    if (typeof content !== "string") return [];
    const at = typeof time === "string" ? Date.parse(time) : Number.NaN;
    return [
      {
        id: typeof id === "number" && Number.isSafeInteger(id) ? id : index,
        content,
        type: role === "user" ? "input" : "output",
        time: toRfc3339(Number.isNaN(at) ? created_at : at),
      },
    ];
  });
  return { count: logs.length, logs, snapshot: true, snapshot_at: toRfc3339(snapshot.at) };
};
