// Wire shapes of forks: workspaces that start with the files of another one.
import { type Static, Type as t } from "@sinclair/typebox";
import { time, uuid } from "../fields.ts";
import { oneOf } from "../one-of.ts";
import { named, namedObject } from "../shape-names.ts";
import { strictObject } from "../strict.ts";

/** The states of a fork. `copying`: the snapshot is being created. `creating`: the new workspaces get the files. */
export const FORK_STATUSES = ["copying", "creating", "ready", "failed"] as const;
export type ForkStatus = (typeof FORK_STATUSES)[number];

/** Maximum workspaces created by one request. */
export const MAX_COPIES = 100;
/** Maximum chats copied with a workspace, newest first. */
export const MAX_COPIED_CHATS = 20;
/** Maximum forks of a workspace in progress. */
export const MAX_OPEN_FORKS = 5;

const ForkedChat = namedObject("ForkedChat", {
  from_chat_id: uuid("The ID of the original chat."),
  chat_id: uuid("The ID of the copied chat. It is known before the chat exists."),
});

const ForkCopy = namedObject("ForkCopy", {
  workspace_id: uuid("The ID of the new workspace. It is known before the workspace exists."),
  name: t.String({ description: "The planned name, or a different one if that was already taken." }),
  status: named(
    "ForkCopyStatus",
    oneOf(
      ["waiting", "creating", "ready", "failed", "deleted"],
      "The status of the new workspace. `failed`: it was not created, or its files were not copied; start the workspace to try again.",
    ),
  ),
  error: t.String({ description: "Why the copy failed; empty otherwise." }),
  chats: t.Array(ForkedChat, { description: "The copied chats; empty if none were requested." }),
});

export const Fork = namedObject("Fork", {
  id: uuid(),
  workspace_id: uuid("The ID of the workspace whose files are copied."),
  owner_id: uuid("The ID of the owner of the new workspaces."),
  status: named(
    "ForkStatus",
    oneOf(
      FORK_STATUSES,
      "The status of the fork. `copying`: the files are being copied. `creating`: the workspaces are being created.",
    ),
  ),
  error: t.String({ description: "Why the fork failed; empty otherwise." }),
  copies: t.Array(ForkCopy, { description: "The new workspaces." }),
  created_at: time(),
  updated_at: time(),
});
export type Fork = Static<typeof Fork>;

export const Forks = namedObject("Forks", { forks: t.Array(Fork, { description: "The forks, newest first." }) });
export type Forks = Static<typeof Forks>;

export const CreateFork = named(
  "CreateFork",
  strictObject({
    count: t.Optional(
      t.Integer({ minimum: 1, maximum: MAX_COPIES, description: "The number of workspaces to create; default 1." }),
    ),
    names: t.Optional(
      t.Array(t.String(), {
        minItems: 1,
        maxItems: MAX_COPIES,
        description: "The names of the new workspaces; default: the workspace's name with `-fork` and a number.",
      }),
    ),
    chats: t.Optional(t.Boolean({ description: "Whether to also copy your chats in the workspace; default true." })),
    home_backup_id: t.Optional(uuid("The ID of a home backup of the workspace to use instead of its current files.")),
    start: t.Optional(t.Boolean({ description: "Whether to start the new workspaces; default false." })),
  }),
);
export type CreateFork = Static<typeof CreateFork>;
