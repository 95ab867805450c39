// What server and daemon say to each other about checkpoints of a workspace's files.
import { type Static, Type as t } from "@sinclair/typebox";

/** Of the files as they were when this message was sent. */
export const Checkpoint = t.Object({
  chat_id: t.String({ pattern: "^[0-9a-f-]{36}$" }),
  message_id: t.Integer({ minimum: 1 }),
});
export type Checkpoint = Static<typeof Checkpoint>;

/** How many files were written or removed; `left_out` says in words which folders have no checkpoint. */
export type Restored = { restored_files: number; left_out: string[] };
