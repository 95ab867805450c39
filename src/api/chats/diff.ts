// `GET /chats/{chat}/diff`: what the chat has pushed, as its git host shows it (facts/chats 6, rule PR-5); and how the state of its pull
// request is shown wherever chats are.
import { Elysia } from "elysia";
import { rfc3339, rfc3339OrAbsent } from "#base/clock.ts";
import type { ShownDiff } from "#db/chat-diffs.ts";
import { ChatDiff, type DiffStatus } from "#schema/chat-diff.ts";
import { callers } from "../caller.ts";
import type { ApiContext } from "../context.ts";
import { fails } from "../responses.ts";
import { chatPath, tags } from "./paths.ts";
import { visibleChat } from "./place.ts";

export const chatDiff = (ctx: ApiContext) =>
  new Elysia().use(callers).get(
    "/:chat/diff",
    async ({ caller, params }) => {
      const { id } = await visibleChat(ctx, params.chat, caller);
      const { row, provider, diff } = await ctx.diffs.read(id);
      const { remote_origin, branch, url } = row;
      return { chat_id: id, provider, remote_origin, branch, ...(url ? { pull_request_url: url } : {}), diff };
    },
    {
      user: true,
      params: chatPath,
      response: { 200: ChatDiff, ...fails(400, 401, 404, 503) },
      detail: {
        tags,
        summary: "Get the diff of a chat's pull request",
        description:
          "Asked of the git host with the account that the chat's owner has linked there. 404 while the chat has pushed nothing to a host of this deployment; 503 in words when the host does not answer.",
      },
    },
  );

export const showDiffStatus = (chat_id: string, diff: ShownDiff): DiffStatus => ({
  chat_id,
  ...(diff.url ? { url: diff.url } : {}),
  ...(diff.pr_state ? { pull_request_state: diff.pr_state } : {}),
  pull_request_title: diff.pr_title,
  pull_request_draft: diff.pr_draft,
  ...(diff.pr_number === null ? {} : { pr_number: diff.pr_number }),
  changes_requested: diff.changes_requested,
  approved: diff.approved,
  reviewer_count: diff.reviewer_count,
  additions: diff.additions,
  deletions: diff.deletions,
  changed_files: diff.changed_files,
  commits: diff.commits,
  ...(diff.author_login ? { author_login: diff.author_login } : {}),
  ...(diff.author_avatar_url ? { author_avatar_url: diff.author_avatar_url } : {}),
  ...(diff.base_branch ? { base_branch: diff.base_branch } : {}),
  head_branch: diff.head_branch || diff.branch,
  ...(diff.refreshed_at === null ? {} : { refreshed_at: rfc3339OrAbsent(diff.refreshed_at) }),
  stale_at: rfc3339(diff.stale_at),
});
