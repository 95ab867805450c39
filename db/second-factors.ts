// Second factors of users: the authenticator app and recovery codes. Each use is a guard, so that of concurrent requests with the same
// code, one succeeds and the others are rejected as `stale`.
import { and, count, lt, sql } from "drizzle-orm";
import { build, deleteBy, eqParam, findBy, insertInto, query, type Statement, statement } from "./engine/sql.ts";
import { recovery_codes, totp_factors } from "./schema/second-factors.ts";
import { deletePasskeysByUser } from "./users/passkeys.ts";

export type TotpFactor = typeof totp_factors.$inferSelect;

const param = sql.placeholder;

export const findTotpFactor = findBy(totp_factors, totp_factors.user_id);

export const insertTotpFactor = insertInto(totp_factors);

/** Consumes the code of a step. Rejected as `stale` when it or a later one was used. */
export const useTotpStep = statement<{ user_id: string; step: number }>(
  build
    .update(totp_factors)
    .set({ last_step: param("step") as never })
    .where(and(eqParam(totp_factors.user_id), lt(totp_factors.last_step, param("step")))),
  { expect: 1 },
);

const deleteTotpFactor = deleteBy(totp_factors, totp_factors.user_id);

/** Deletes the authenticator app of this user. Rejected as `stale` when none exists. */
export const removeTotpFactor = (user_id: string): Statement => ({ ...deleteTotpFactor(user_id), expect: 1 });

export const findRecoveryCode = findBy(recovery_codes, recovery_codes.user_id, recovery_codes.code_hash);

export const countRecoveryCodes = query(
  build.select({ count: count() }).from(recovery_codes).where(eqParam(recovery_codes.user_id)),
);

export const insertRecoveryCodes = insertInto(recovery_codes);

/** Consumes a recovery code. Rejected as `stale` when it was already used. */
export const useRecoveryCode = statement<{ user_id: string; code_hash: string }>(
  build.delete(recovery_codes).where(and(eqParam(recovery_codes.user_id), eqParam(recovery_codes.code_hash))),
  { expect: 1 },
);

export const deleteRecoveryCodesByUser = deleteBy(recovery_codes, recovery_codes.user_id);

/** Deletes all second factors of this user. */
export const deleteFactorsByUser = (user_id: string): Statement[] => [
  deleteTotpFactor(user_id),
  deletePasskeysByUser(user_id),
  deleteRecoveryCodesByUser(user_id),
];
