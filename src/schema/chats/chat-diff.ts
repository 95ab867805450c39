// Wire shape of a chat's pull request (specification "Diff status", facts/chats 6).
import { type Static, Type as t } from "@sinclair/typebox";
import { time, uuid } from "../fields.ts";
import { oneOf } from "../one-of.ts";
import { namedObject } from "../shape-names.ts";

export const DiffStatus = namedObject("ChatDiffStatus", {
  chat_id: uuid(),
  url: t.Optional(t.String({ description: "The URL of the pull request's page." })),
  pull_request_state: t.Optional(
    oneOf(["open", "closed", "merged"], "The state of the pull request; absent without a pull request."),
  ),
  pull_request_title: t.String({ description: "The title of the pull request; empty without one." }),
  pull_request_draft: t.Boolean({ description: "Whether the pull request is a draft." }),
  pr_number: t.Optional(t.Integer({ description: "The number of the pull request; absent without one." })),
  changes_requested: t.Boolean({ description: "Whether a reviewer's latest review requests changes." }),
  approved: t.Boolean({ description: "Whether a reviewer has approved the pull request and none requests changes." }),
  reviewer_count: t.Integer({
    description: "The number of users who have reviewed the pull request or were asked to.",
  }),
  additions: t.Integer({ description: "The number of added lines." }),
  deletions: t.Integer({ description: "The number of removed lines." }),
  changed_files: t.Integer(),
  commits: t.Integer(),
  author_login: t.Optional(t.String({ description: "The author's username at the Git host." })),
  author_avatar_url: t.Optional(t.String()),
  base_branch: t.Optional(t.String({ description: "The branch that the pull request would be merged into." })),
  head_branch: t.Optional(
    t.String({ description: "The branch of the pull request or, without one, the branch that the chat pushed." }),
  ),
  refreshed_at: t.Optional(time("When the git host last reported the status.")),
  stale_at: t.Optional(time("When the status is next refreshed.")),
});
export type DiffStatus = Static<typeof DiffStatus>;

export const ChatDiff = namedObject("ChatDiff", {
  chat_id: uuid(),
  provider: t.String({ description: "The kind of git host, such as `github`." }),
  remote_origin: t.String({ description: "The URL of the repository that the chat pushed to." }),
  branch: t.String({ description: "The branch that the chat pushed." }),
  pull_request_url: t.Optional(
    t.String({ description: "The URL of the pull request's page; absent without a pull request." }),
  ),
  diff: t.String({
    description: "The unified diff of the pull request, or of the branch if there is no pull request.",
  }),
});
export type ChatDiff = Static<typeof ChatDiff>;
