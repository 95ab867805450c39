// What server and daemon say to each other about checkpoints of a workspace's files, and how long both of them count on one.
import { type Static, Type as t } from "@sinclair/typebox";

/** A message's checkpoint is offered until the person has written so many others in the chat, edited away or not (rule UN-9). */
export const CHECKPOINTS_OF_CHAT = 100;
/** And for so many days (rule UN-9). */
export const CHECKPOINT_DAYS = 30;

const chatId = () => t.String({ pattern: "^[0-9a-f-]{36}$" });

/** Of the files as they were when this message was sent. */
export const Checkpoint = t.Object({ chat_id: chatId(), message_id: t.Integer({ minimum: 1 }) });
export type Checkpoint = Static<typeof Checkpoint>;

/** Takes one now. `within_ms`: what takes longer does not count, since tools may have changed files by then. */
export const TakeCheckpoint = t.Object({
  chat_id: chatId(),
  message_id: t.Integer({ minimum: 1 }),
  within_ms: t.Optional(t.Integer({ minimum: 1 })),
});

/**
 * `problems`: in words, which folders were not kept. `chats`: once a day, of which chats something is kept, checkpoints or the home of a coding
 * agent; chats that no longer exist are to be forgotten.
 */
export type CheckpointTaken = { message: string; problems?: string[]; chats?: string[] };

/** Gives a chat the checkpoints of the chat that it is a copy of, each by the number that its message has there. */
export const CopyCheckpoints = t.Object({
  from_chat_id: chatId(),
  chat_id: chatId(),
  messages: t.Array(t.Object({ from_message_id: t.Integer({ minimum: 1 }), message_id: t.Integer({ minimum: 1 }) }), {
    maxItems: CHECKPOINTS_OF_CHAT,
  }),
});
export type CopyCheckpoints = Static<typeof CopyCheckpoints>;

/** Chats that were deleted. */
export const ForgetCheckpoints = t.Object({ chat_ids: t.Array(chatId(), { maxItems: 1_000 }) });

/** What has changed in one folder since a checkpoint. `unified_diff` leaves out what is too large, and says so. */
export type FolderChanges = {
  root: string;
  files: number;
  added: number;
  removed: number;
  unified_diff: string;
};

/** What has changed since a checkpoint, folders without changes left out; `problems` says in words what is not known. */
export type CheckpointChanges = { folders: FolderChanges[]; problems: string[] };

/** How many files were written or removed; `left_out` says in words which files and folders did not return. */
export type Restored = { restored_files: number; left_out: string[] };
