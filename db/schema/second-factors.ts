// What proves a person alongside the password: codes of an authenticator app, and recovery codes for when it is lost.
import { index, integer, primaryKey, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import { userId } from "./columns.ts";
import { callerTable, quietTable } from "./touching.ts";
import { users } from "./users.ts";

export const totp_factors = callerTable("totp_factors", {
  user_id: text()
    .primaryKey()
    .references(() => users.id),
  /** Sealed (src/base/encryption.ts) for the context `totp:<user_id>`. */
  sealed_secret: text().notNull(),
  /** The step of 30 seconds whose code was taken last: neither it nor an earlier one counts again. */
  last_step: integer().notNull(),
  created_at: integer().notNull(),
});

export const recovery_codes = quietTable(
  "recovery_codes",
  {
    user_id: userId(),
    /** Of src/authentication/recovery-codes.ts; the row goes with its use. */
    code_hash: text().notNull(),
    created_at: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.user_id, table.code_hash] })],
);

/** Passkeys: key pairs of WebAuthn, of which the public half is here. */
export const passkeys = callerTable(
  "passkeys",
  {
    id: text().primaryKey(),
    user_id: userId(),
    name: text().notNull(),
    /** base64url, as browsers tell it. */
    credential_id: text().notNull(),
    /** COSE, base64url. */
    public_key: text().notNull(),
    /** Of its last use: one that does not rise tells of a copy. Some authenticators always say 0. */
    counter: integer().notNull(),
    transports: text({ mode: "json" }).$type<string[]>().notNull(),
    backed_up: integer({ mode: "boolean" }).notNull(),
    created_at: integer().notNull(),
    last_used_at: integer(),
  },
  (table) => [index("passkeys_user").on(table.user_id), uniqueIndex("passkeys_credential").on(table.credential_id)],
);
