// Sign-in and sign-out: the session a sign-in creates, the factors it has proven, and its audit log entries (rules ID-3 to ID-7, AU-6).
import { AppError } from "#base/errors.ts";
import { log } from "#base/log.ts";
import { runOutsideRequest } from "#base/network/current-request.ts";
import { PassedOn } from "#base/network/local-reads.ts";
import type { Statement } from "#db/engine/sql.ts";
import { CommitError } from "#db/engine/store.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import { type ApiKey, deleteKey, guardKey, touchKey, updateKey } from "#db/users/api-keys.ts";
import { findUser, guardNotSuspended, touchUser, type User } from "#db/users/users.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { DomainContext } from "../context.ts";
import { auditReactivation } from "./audit.ts";
import { createKey, isSignIn, LOGIN_TTL_SECONDS } from "./keys.ts";
import { rememberSignInAddress } from "./known-address.ts";

type Deps = Pick<DomainContext, "store" | "clock">;

/** The address and program that used a key. */
export type KeyClient = { readonly ip_address: string; readonly user_agent: string };

/** The factors the person has just proven. */
export type ProvenFactors = { readonly password: boolean; readonly factor: boolean };

/** Returns the key columns that record when the user proved which factors. */
const toProofColumns = ({ password, factor }: ProvenFactors, now: number): Partial<ApiKey> => ({
  ...(password ? { password_proved_at: now } : {}),
  ...(factor ? { factor_proved_at: now } : {}),
});

/** Records a new proof on an existing session. */
export const recordProof = (key_id: string, proved: ProvenFactors, now: number): Statement =>
  updateKey(key_id, toProofColumns(proved, now));

/** Returns the entry for a sign-in, or for a failed attempt, of a known user. */
const signInEntry = ({ id, username }: User, now: number, status_code: number): Statement =>
  insertAudit({ now, action: "login", resource_type: "api_key", target: username, user_id: id, status_code });

export type NewSession = {
  readonly seen: KeyClient;
  readonly proved: ProvenFactors;
  /** Placed first in the batch. */
  readonly guards: readonly Statement[];
  readonly login_type?: "password" | "oidc";
  /** Returns statements to store with the session, by the ID of its key. */
  readonly keeps?: ((key_id: string) => readonly Statement[]) | undefined;
};

/** Returns the user. Rejects with 401 when they are suspended. */
export const requireActive = (user: User): User => {
  if (user.status !== "suspended") return user;
  throw new AppError("unauthenticated", "This account is suspended. Ask an administrator to activate it.");
};

/** Creates a session and returns its token. Rejects with 401 when the user is suspended, and with CommitError `stale` when a guard fails. */
export const startSession = async (
  { store, clock }: Deps,
  user: User,
  { seen, proved, guards, login_type = "password", keeps }: NewSession,
): Promise<string> => {
  const now = clock.now();
  const { id, token, statements } = createKey({
    user_id: user.id,
    login_type,
    lifetime_seconds: LOGIN_TTL_SECONDS,
    seen,
    now,
    proved: toProofColumns(proved, now),
  });
  const commit = store.commit([
    ...guards,
    // A suspension in the meantime has revoked the keys before this one exists.
    guardNotSuspended({ id: user.id }),
    ...statements,
    ...(keeps?.(id) ?? []),
    touchUser({ id: user.id, now }),
    ...rememberSignInAddress(user.id, seen.ip_address, now),
    signInEntry(user, now, 201),
    ...auditReactivation(user, now),
  ]);
  await commit.catch(async (error) => {
    const isStale = error instanceof CommitError && error.reason === "stale";
    if (isStale) requireActive((await store.get(findUser({ id: user.id }))) ?? user);
    throw error;
  });
  return token;
};

type NewAppSession = {
  readonly id: string;
  readonly secret: string;
  readonly user_id: string;
  /** The key of the sign-in it is derived from and ends with. */
  readonly parent_id: string;
  /** The only workspace that key is valid for. */
  readonly workspace_id: string | undefined;
  readonly lifetime_seconds: number;
};

/** Creates a key that opens only apps. Returns undefined when its ID was used before, or the sign-in it is derived from has ended. */
export const startAppSession = async (
  { store, clock }: Deps,
  { user_id, parent_id, workspace_id, lifetime_seconds, ...idAndSecret }: NewAppSession,
): Promise<string | undefined> => {
  const now = clock.now();
  const { token, statements } = createKey(
    {
      user_id,
      login_type: "password",
      scopes: ["application_connect"],
      lifetime_seconds,
      parent_id,
      workspace_id,
      now,
    },
    idAndSecret,
  );
  try {
    await store.commit([guardKey({ id: parent_id, now }), ...statements]);
    return token;
  } catch (error) {
    const isUsed = error instanceof CommitError && (error.reason === "constraint" || error.reason === "stale");
    if (isUsed) return undefined;
    throw error;
  }
};

/** Audits a rejected attempt. Never rejects, because the attempt fails regardless. */
export const noteFailedSignIn = async ({ store, clock }: Deps, user: User): Promise<void> => {
  await store
    .commit([signInEntry(user, clock.now(), 401)])
    .catch((error) => log("http").warn("cannot record a failed sign-in: {error}", { error }));
};

/** Deletes the key of the request; everything opened with it ends. */
export const signOut = async (
  { store, clock, topics }: DomainContext,
  { user_id, username, key_id }: UserCaller,
): Promise<void> => {
  await store.commit([
    deleteKey(key_id),
    insertAudit({ now: clock.now(), action: "logout", resource_type: "api_key", target: username, user_id }),
  ]);
  topics.publish("key_gone", key_id, {});
};

type UsedKey = Pick<ApiKey, "login_type" | "lifetime_seconds" | "expires_at" | "user_id"> &
  Pick<User, "username" | "status"> & { readonly key_id: string };

/** Records the use of a key, which reactivates a dormant user. Not awaited; after a failure, a later use records it. */
export const noteKeyUse = ({ store }: Pick<Deps, "store">, key: UsedKey, now: number, seen: KeyClient): void => {
  const expires = isSignIn(key) ? now + key.lifetime_seconds * 1000 : key.expires_at;
  const writes = [
    touchKey({
      id: key.key_id,
      now,
      expires_at: Math.max(expires, key.expires_at),
      known_expires_at: key.expires_at,
      ...seen,
    }),
    touchUser({ id: key.user_id, now }),
    ...auditReactivation({ id: key.user_id, username: key.username, status: key.status }, now),
  ];
  // The key was used whatever the outcome of the request.
  const committed = runOutsideRequest(() => store.commit(writes));
  committed.catch((error) => {
    if (!(error instanceof PassedOn)) log("http").warn("cannot record the use of a key", { error });
  });
};
