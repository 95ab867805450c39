// Passkeys of users. Each use is a guard on the counter, so that of concurrent uses of one passkey, only one succeeds.
import { and, asc, eq, sql } from "drizzle-orm";
import { build, deleteBy, eqParam, findBy, insertInto, query, statement, updateBy } from "../engine/sql.ts";
import { passkeys } from "../schema/second-factors.ts";

export type Passkey = typeof passkeys.$inferSelect;

const param = sql.placeholder;

/** Oldest first. Parameters: {user_id}. */
export const listPasskeys = query(
  build.select().from(passkeys).where(eqParam(passkeys.user_id)).orderBy(asc(passkeys.created_at), asc(passkeys.id)),
);

/** Parameters: {credential_id}. */
export const findPasskeyByCredential = findBy(passkeys, passkeys.credential_id);

/** Rejected as `constraint` when the credential exists. */
export const insertPasskey = insertInto(passkeys);
export const updatePasskey = updateBy(passkeys, passkeys.id);
export const deletePasskey = deleteBy(passkeys, passkeys.id);
export const deletePasskeysByUser = deleteBy(passkeys, passkeys.user_id);

/** Records a use. Rejected as `stale` when another one came in between. */
export const usePasskey = statement<{ id: string; known_counter: number; counter: number; now: number }>(
  build
    .update(passkeys)
    .set({ counter: param("counter") as never, last_used_at: param("now") as never })
    .where(and(eqParam(passkeys.id), eq(passkeys.counter, param("known_counter")))),
  { expect: 1 },
);
