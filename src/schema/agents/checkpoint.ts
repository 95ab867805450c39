// Wire shapes of checkpoints of a workspace's files, between server and daemon, and the retention that both use.
import { type Static, Type as t } from "@sinclair/typebox";

/**
 * A message's checkpoint is available until the user has sent this many later messages in the chat. Messages that an edit has removed count
 * too (rule UN-9).
 */
export const MAX_CHECKPOINTS_PER_CHAT = 100;
/** No checkpoint is available for longer than this (rule UN-9). */
export const CHECKPOINT_DAYS = 30;

const chatId = () => t.String({ pattern: "^[0-9a-f-]{36}$" });

/** Identifies the state of the files when this message was sent. */
export const Checkpoint = t.Object({ chat_id: chatId(), message_id: t.Integer({ minimum: 1 }) });
export type Checkpoint = Static<typeof Checkpoint>;

/** Takes a checkpoint. `within_ms`: a checkpoint that takes longer is invalid, because tools may have changed files before its end. */
export const TakeCheckpoint = t.Object({
  chat_id: chatId(),
  message_id: t.Integer({ minimum: 1 }),
  within_ms: t.Optional(t.Integer({ minimum: 1 })),
});

/**
 * `problems`: readable descriptions of folders that were not saved. `chats`: once a day, the chats with saved checkpoints or a coding
 * agent's home, so that deleted chats can be cleaned up.
 */
export type CheckpointTaken = { message: string; problems?: string[]; chats?: string[] };

/** Gives a forked chat the original's checkpoints, each under its message's number in the fork. */
export const CopyCheckpoints = t.Object({
  from_chat_id: chatId(),
  chat_id: chatId(),
  messages: t.Array(t.Object({ from_message_id: t.Integer({ minimum: 1 }), message_id: t.Integer({ minimum: 1 }) }), {
    maxItems: MAX_CHECKPOINTS_PER_CHAT,
  }),
});
export type CopyCheckpoints = Static<typeof CopyCheckpoints>;

/** Deletes the checkpoints of deleted chats. */
export const ForgetCheckpoints = t.Object({ chat_ids: t.Array(chatId(), { maxItems: 1_000 }) });

/** Changes in one folder since a checkpoint. `unified_diff` contains a note in place of omitted files that are too large. */
export type FolderChanges = {
  root: string;
  files: number;
  added: number;
  removed: number;
  unified_diff: string;
};

/** Changes since a checkpoint, without unchanged folders; `problems` describes what is unknown. */
export type CheckpointChanges = { folders: FolderChanges[]; problems: string[] };

/** `restored_files`: the number of files that were written or removed. `left_out` describes files and folders that were not restored. */
export type RestoreResult = { restored_files: number; left_out: string[] };
