// Where each user has signed in: guesses from elsewhere do not lock anyone out there.
import { integer, primaryKey, text } from "drizzle-orm/sqlite-core";
import { userId } from "./columns.ts";
import { quietTable } from "./touching.ts";

export const known_addresses = quietTable(
  "known_addresses",
  {
    user_id: userId(),
    /** An IPv4 address, or the /64 of an IPv6 address. */
    network: text().notNull(),
    last_used: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.user_id, table.network] })],
);
