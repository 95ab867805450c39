// Second factors: codes of an authenticator app, recovery codes for when it is lost, and passkeys.
import { index, integer, primaryKey, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import { callerTable, uncachedTable } from "./cache-dependencies.ts";
import { userId } from "./columns.ts";
import { users } from "./users.ts";

export const totp_factors = callerTable("totp_factors", {
  user_id: text()
    .primaryKey()
    .references(() => users.id),
  /** Encrypted (src/base/encryption.ts) for the context `totp:<user_id>`. */
  sealed_secret: text().notNull(),
  /** The 30-second step of the last accepted code. Codes of this or an earlier step are rejected. */
  last_step: integer().notNull(),
  created_at: integer().notNull(),
});

export const recovery_codes = uncachedTable(
  "recovery_codes",
  {
    user_id: userId(),
    /** Computed by src/authentication/recovery-codes.ts. Using the code deletes the row. */
    code_hash: text().notNull(),
    created_at: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.user_id, table.code_hash] })],
);

/** WebAuthn passkeys: the public half of each key pair. */
export const passkeys = callerTable(
  "passkeys",
  {
    id: text().primaryKey(),
    user_id: userId(),
    name: text().notNull(),
    /** base64url, as reported by browsers. */
    credential_id: text().notNull(),
    /** COSE, base64url. */
    public_key: text().notNull(),
    /** The counter of the last use. One that does not increase indicates a cloned authenticator. Some authenticators always report 0. */
    counter: integer().notNull(),
    transports: text({ mode: "json" }).$type<string[]>().notNull(),
    backed_up: integer({ mode: "boolean" }).notNull(),
    created_at: integer().notNull(),
    last_used_at: integer(),
  },
  (table) => [index("passkeys_user").on(table.user_id), uniqueIndex("passkeys_credential").on(table.credential_id)],
);
