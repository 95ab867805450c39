// Addresses from which each user has signed in. Password guesses from elsewhere do not lock them out there.
import { integer, primaryKey, text } from "drizzle-orm/sqlite-core";
import { uncachedTable } from "./cache-dependencies.ts";
import { userId } from "./columns.ts";

export const known_addresses = uncachedTable(
  "known_addresses",
  {
    user_id: userId(),
    /** An IPv4 address, or the /64 prefix of an IPv6 address. */
    network: text().notNull(),
    last_used: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.user_id, table.network] })],
);
