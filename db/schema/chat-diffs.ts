// The pull requests of chats: one row for each chat whose work was pushed to a git host that the deployment knows, with what that host
// said of it last. Written by actors/chat/background/pull-requests.ts alone, outside of the chats' mailboxes: nothing of a chat depends on it.
import { integer, text } from "drizzle-orm/sqlite-core";
import { chats } from "./chats.ts";
import { quietTable } from "./touching.ts";

/** What a host has answered, by the name of the question, and the mark that asks whether it still holds. */
export type KeptAnswers = Readonly<
  Record<string, { readonly path: string; readonly etag: string; readonly value: unknown }>
>;

export const chat_diffs = quietTable("chat_diffs", {
  chat: integer()
    .primaryKey()
    .references(() => chats.key),
  provider_id: text().notNull(),
  /** Without credentials. */
  remote_origin: text().notNull(),
  branch: text().notNull(),
  /** When it was pushed, as far as we have seen. */
  pushed_at: integer().notNull(),
  /** Null while there is no pull request. */
  pr_number: integer(),
  pr_state: text().$type<"open" | "closed" | "merged">(),
  pr_draft: integer({ mode: "boolean" }).notNull().default(false),
  pr_title: text().notNull().default(""),
  url: text().notNull().default(""),
  author_login: text().notNull().default(""),
  author_avatar_url: text().notNull().default(""),
  base_branch: text().notNull().default(""),
  head_branch: text().notNull().default(""),
  additions: integer().notNull().default(0),
  deletions: integer().notNull().default(0),
  changed_files: integer().notNull().default(0),
  commits: integer().notNull().default(0),
  reviewer_count: integer().notNull().default(0),
  approved: integer({ mode: "boolean" }).notNull().default(false),
  changes_requested: integer({ mode: "boolean" }).notNull().default(false),
  /** What the host is asked for only if it has changed. */
  kept: text({ mode: "json" }).$type<KeptAnswers>().notNull().default({}),
  failures: integer().notNull().default(0),
  refreshed_at: integer(),
  stale_at: integer().notNull(),
});
