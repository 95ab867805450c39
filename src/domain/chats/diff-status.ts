// Presents the pull request status of a chat.
import { rfc3339, rfc3339OrAbsent } from "#base/clock.ts";
import type { ShownDiff } from "#db/chats/diffs.ts";
import type { DiffStatus } from "#schema/chats/chat-diff.ts";

export const presentDiffStatus = (chat_id: string, diff: ShownDiff): DiffStatus => ({
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
