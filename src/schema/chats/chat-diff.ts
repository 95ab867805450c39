// Wire shape of a chat's pull request (specification "Diff status", facts/chats 6).
import { type Static, Type as t } from "@sinclair/typebox";
import { time, uuid } from "../fields.ts";
import { oneOf } from "../one-of.ts";
import { namedObject } from "../shape-names.ts";

const absent = t.Optional;

export const DiffStatus = namedObject("ChatDiffStatus", {
  chat_id: uuid(),
  url: absent(t.String({ description: "The URL of the pull request's page." })),
  pull_request_state: absent(
    oneOf(["open", "closed", "merged"], "The state of the pull request; absent without a pull request."),
  ),
  pull_request_title: t.String(),
  pull_request_draft: t.Boolean(),
  pr_number: absent(t.Integer()),
  changes_requested: t.Boolean(),
  approved: t.Boolean(),
  reviewer_count: t.Integer(),
  additions: t.Integer(),
  deletions: t.Integer(),
  changed_files: t.Integer(),
  commits: t.Integer(),
  author_login: absent(t.String()),
  author_avatar_url: absent(t.String()),
  base_branch: absent(t.String()),
  head_branch: absent(t.String()),
  refreshed_at: absent(time("When the git host last reported the status.")),
  stale_at: absent(time("When the status is next refreshed.")),
});
export type DiffStatus = Static<typeof DiffStatus>;

export const ChatDiff = namedObject("ChatDiff", {
  chat_id: uuid(),
  provider: t.String({ description: "The kind of git host, such as `github`." }),
  remote_origin: t.String(),
  branch: t.String(),
  pull_request_url: absent(t.String()),
  diff: t.String({
    description: "The unified diff of the pull request, or of the branch if there is no pull request.",
  }),
});
export type ChatDiff = Static<typeof ChatDiff>;
