// Passkeys of users. Each use is a guard over the counter, so that of racing answers of one passkey one is taken.
import { and, asc, eq, sql } from "drizzle-orm";
import { build, deleteBy, findBy, given, insertInto, query, statement, updateBy } from "../engine/sql.ts";
import { passkeys } from "../schema/second-factors.ts";

export type Passkey = typeof passkeys.$inferSelect;

const place = sql.placeholder;

/** {user_id}: oldest first. */
export const listPasskeys = query(
  build.select().from(passkeys).where(given(passkeys.user_id)).orderBy(asc(passkeys.created_at), asc(passkeys.id)),
);

/** {credential_id}. */
export const findPasskeyByCredential = findBy(passkeys, passkeys.credential_id);

/** Refused as `constraint` when there is one with this credential. */
export const insertPasskey = insertInto(passkeys);
export const updatePasskey = updateBy(passkeys, passkeys.id);
export const deletePasskey = deleteBy(passkeys, passkeys.id);
export const deletePasskeysByUser = deleteBy(passkeys, passkeys.user_id);

/** Notes a use. Refused as `stale` when another came in between. */
export const usePasskey = statement<{ id: string; known_counter: number; counter: number; now: number }>(
  build
    .update(passkeys)
    .set({ counter: place("counter") as never, last_used_at: place("now") as never })
    .where(and(given(passkeys.id), eq(passkeys.counter, place("known_counter")))),
  { expect: 1 },
);
