// Wire shapes of changes in a chat's git repositories, as the daemon reports them (specification "Git server message", facts/chats 2.11).
// Used by the daemon, the server and its clients.
import { type Static, Type as t } from "@sinclair/typebox";
import { optionalTime } from "../fields.ts";
import { oneOf } from "../one-of.ts";
import { namedObject } from "../shape-names.ts";

const GitRepository = namedObject("GitRepository", {
  repo_root: t.String({ description: "The absolute path of the repository in the workspace." }),
  branch: t.String({ description: "The current branch; empty if none is checked out." }),
  remote_origin: t.String({
    description: "The URL of the remote `origin`, without credentials; empty if there is no `origin`.",
  }),
  unified_diff: t.String({
    description: "The changes in the working tree since the last commit, including new files, as a unified diff.",
  }),
  removed: t.Boolean({ description: "Whether the repository was removed. If true, only `repo_root` is set." }),
});
export type GitRepository = Static<typeof GitRepository>;

export const GitMessage = namedObject("GitMessage", {
  type: oneOf(["changes", "error"], "`changes`: `repositories` is set. `error`: `message` is set."),
  scanned_at: optionalTime("When the repositories were read."),
  repositories: t.Optional(
    t.Array(GitRepository, { description: "The repositories that have changed since the last message." }),
  ),
  message: t.Optional(t.String({ description: "Why a request failed, as a sentence." })),
});
export type GitMessage = Static<typeof GitMessage>;

/** A client's message on the stream of a chat's repositories. */
export const GitRequest = namedObject("GitRequest", {
  type: t.Literal("refresh", { description: "Reads the repositories now." }),
});

/** The checked-out branch and commit of a repository; `pushed`: the branch is known to exist at the remote. */
export const GitReferences = namedObject("GitReferences", {
  repositories: t.Array(
    t.Object({ repo_root: t.String(), branch: t.String(), remote_origin: t.String(), pushed: t.Boolean() }),
  ),
});
export type GitReferences = Static<typeof GitReferences>;

/** The header with the IDs of the chats for which a request to the daemon is made, separated by commas: the chat itself, then its root. */
export const CHAT_HEADER = "slipway-chat";

/**
 * Files that a chat's coding agent may have changed. The daemon does not know them otherwise, because coding agents do not use its tools.
 * Paths are absolute, or relative to the agent's folder.
 */
export const TouchedFiles = t.Object({
  paths: t.Array(t.String({ minLength: 1, maxLength: 4_096 }), { maxItems: 100 }),
  commands: t.Array(
    t.Object({
      command: t.String({ maxLength: 100_000 }),
      directory: t.Optional(t.String({ minLength: 1, maxLength: 4_096 })),
    }),
    { maxItems: 20 },
  ),
});
export type TouchedFiles = Static<typeof TouchedFiles>;
