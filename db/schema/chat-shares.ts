// Shares of chats: one row for each root chat and each person or group that can read it (sub-chats follow their root). Written only by the
// chat actor.
import { index, integer, primaryKey, text } from "drizzle-orm/sqlite-core";
import { uncachedTable } from "./cache-dependencies.ts";
import { chats } from "./chats.ts";

export const chat_shares = uncachedTable(
  "chat_shares",
  {
    chat: integer()
      .notNull()
      .references(() => chats.key),
    /** A user's ID, or an organization's for all of its members. */
    subject: text().notNull(),
    kind: text().$type<"user" | "group">().notNull(),
    role: text().$type<"read">().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.chat, table.subject] }),
    // Chats shared with a subject.
    index("chat_shares_subject").on(table.subject, table.chat),
  ],
);
