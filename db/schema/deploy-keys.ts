// Deploy keys of people: a key pair for one repository, used by their workspaces and the server.
import { integer, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import { uncachedTable } from "./cache-dependencies.ts";
import { users } from "./users.ts";

export const deploy_keys = uncachedTable(
  "deploy_keys",
  {
    id: text().primaryKey(),
    user_id: text()
      .notNull()
      .references(() => users.id),
    /** The repository's web URL and ssh URL. */
    url: text().notNull(),
    ssh_url: text().notNull(),
    /** Host and path of both, used for lookups (src/git/deploy-key.ts). */
    repository: text().notNull(),
    ssh_repository: text().notNull(),
    public_key: text().notNull(),
    /** Encrypted (src/base/encryption.ts) for the context `deploy_key:<user_id>:<id>`. */
    sealed_private_key: text().notNull(),
    created_at: integer().notNull(),
  },
  (table) => [uniqueIndex("deploy_keys_repository").on(table.user_id, table.repository)],
);
