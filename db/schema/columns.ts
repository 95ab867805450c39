// Columns of owners that many tables share.
import { text } from "drizzle-orm/sqlite-core";
import { organizations, users } from "./users.ts";

export const userId = () =>
  text()
    .notNull()
    .references(() => users.id);

export const organizationId = () =>
  text()
    .notNull()
    .references(() => organizations.id);
