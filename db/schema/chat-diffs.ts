// Pull requests of chats: one row for each chat that pushed to a known git host, with the host's last answer. Written only by
// actors/chat/background/pull-requests.ts, outside of the chats' mailboxes; nothing in a chat depends on it.
import { integer, text } from "drizzle-orm/sqlite-core";
import { uncachedTable } from "./cache-dependencies.ts";
import { chats } from "./chats.ts";

/** A host's answers by request, each with the validator for a conditional request. */
export type StoredAnswers = Readonly<
  Record<string, { readonly path: string; readonly etag: string; readonly value: unknown }>
>;

export const chat_diffs = uncachedTable("chat_diffs", {
  chat: integer()
    .primaryKey()
    .references(() => chats.key),
  provider_id: text().notNull(),
  /** Without credentials. */
  remote_origin: text().notNull(),
  branch: text().notNull(),
  /** When the push was last seen. */
  pushed_at: integer().notNull(),
  /** Null without a pull request. */
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
  /** Cached answers for conditional requests to the host. */
  kept: text({ mode: "json" }).$type<StoredAnswers>().notNull().default({}),
  failures: integer().notNull().default(0),
  refreshed_at: integer(),
  stale_at: integer().notNull(),
});
