// The key pair that a user's workspaces use for git servers, one row per user. Created on first use.
import { integer, text } from "drizzle-orm/sqlite-core";
import { uncachedTable } from "./cache-dependencies.ts";
import { users } from "./users.ts";

export const git_ssh_keys = uncachedTable("git_ssh_keys", {
  user_id: text()
    .primaryKey()
    .references(() => users.id),
  /** In the format of `authorized_keys`. */
  public_key: text().notNull(),
  /** Encrypted (src/base/encryption.ts) for the context `git_ssh_key:<user_id>`. */
  sealed_private_key: text().notNull(),
  created_at: integer().notNull(),
  updated_at: integer().notNull(),
});
