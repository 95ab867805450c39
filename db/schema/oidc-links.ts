// Accounts at OpenID Connect providers that sign a user in.
import { index, integer, primaryKey, text } from "drizzle-orm/sqlite-core";
import { userId } from "./columns.ts";
import { quietTable } from "./touching.ts";

export const oidc_links = quietTable(
  "oidc_links",
  {
    issuer: text().notNull(),
    /** The person's id there, the claim `sub`: never given to another. */
    subject: text().notNull(),
    user_id: userId(),
    created_at: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.issuer, table.subject] }), index("oidc_links_user").on(table.user_id)],
);
