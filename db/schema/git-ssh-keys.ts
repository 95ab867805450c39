// The key pair with which the workspaces of a user reach git servers, one row a user. Made on first need.
import { integer, text } from "drizzle-orm/sqlite-core";
import { quietTable } from "./touching.ts";
import { users } from "./users.ts";

export const git_ssh_keys = quietTable("git_ssh_keys", {
  user_id: text()
    .primaryKey()
    .references(() => users.id),
  /** As it stands in `authorized_keys`. */
  public_key: text().notNull(),
  /** Sealed (src/base/encryption.ts) for the context `git_ssh_key:<user_id>`. */
  sealed_private_key: text().notNull(),
  created_at: integer().notNull(),
  updated_at: integer().notNull(),
});
