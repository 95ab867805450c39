// Signing in and out: the session a sign-in makes, what it has proved, and what the audit log tells of it (rules ID-3 to ID-7, AU-6).
import { log } from "#base/log.ts";
import { PassedOn } from "#base/network/read-here.ts";
import { besideRequest } from "#base/network/request-part.ts";
import type { Statement } from "#db/engine/sql.ts";
import { CommitError } from "#db/engine/store.ts";
import { audited } from "#db/reports/audit/audit.ts";
import { type ApiKey, deleteKey, isKeyStill, touchKey, updateKey } from "#db/users/api-keys.ts";
import { touchUser, type User } from "#db/users/users.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { DomainContext } from "../context.ts";
import { wokenUp } from "./audit.ts";
import { isSignIn, LOGIN_SECONDS, newKey } from "./keys.ts";
import { rememberedAddress } from "./known-address.ts";

type Deps = Pick<DomainContext, "store" | "clock">;

/** Where a key was used, and with which program. */
export type Seen = { readonly ip_address: string; readonly user_agent: string };

/** What the person has proved just now. */
export type Proved = { readonly password: boolean; readonly factor: boolean };

/** When a session's user proved what, as columns of its key. */
const provedNow = ({ password, factor }: Proved, now: number): Partial<ApiKey> => ({
  ...(password ? { password_proved_at: now } : {}),
  ...(factor ? { factor_proved_at: now } : {}),
});

/** Notes a new proof of a session there is. */
export const noteProof = (key_id: string, proved: Proved, now: number): Statement =>
  updateKey(key_id, provedNow(proved, now));

/** A sign-in of someone we know, or a try of one. */
const signInEntry = ({ id, username }: User, now: number, status_code: number): Statement =>
  audited({ now, action: "login", resource_type: "api_key", target: username, user_id: id, status_code });

export type NewSession = {
  readonly seen: Seen;
  readonly proved: Proved;
  /** They come first in the batch. */
  readonly guards: readonly Statement[];
  readonly login_type?: "password" | "oidc";
  /** What is kept with the session, by the id of its key. */
  readonly keeps?: ((key_id: string) => readonly Statement[]) | undefined;
};

/** Makes the session of a sign-in and answers its token. Throws CommitError `stale` when a guard refuses. */
export const startSession = async (
  { store, clock }: Deps,
  user: User,
  { seen, proved, guards, login_type = "password", keeps }: NewSession,
): Promise<string> => {
  const now = clock.now();
  const { id, token, statements } = newKey({
    user_id: user.id,
    login_type,
    lifetime_seconds: LOGIN_SECONDS,
    seen,
    now,
    proved: provedNow(proved, now),
  });
  await store.commit([
    ...guards,
    ...statements,
    ...(keeps?.(id) ?? []),
    touchUser({ id: user.id, now }),
    ...rememberedAddress(user.id, seen.ip_address, now),
    signInEntry(user, now, 201),
    ...wokenUp(user, now),
  ]);
  return token;
};

type NewAppSession = {
  readonly id: string;
  readonly secret: string;
  readonly user_id: string;
  /** The key of the sign-in it comes from, with which it ends. */
  readonly parent_id: string;
  /** The one workspace that key is for. */
  readonly workspace_id: string | undefined;
  readonly lifetime_seconds: number;
};

/** A key that opens applications and nothing else. Undefined when its id was used before, or the sign-in it comes from has ended. */
export const startAppSession = async (
  { store, clock }: Deps,
  { user_id, parent_id, workspace_id, lifetime_seconds, ...own }: NewAppSession,
): Promise<string | undefined> => {
  const now = clock.now();
  const { token, statements } = newKey(
    {
      user_id,
      login_type: "password",
      scopes: ["application_connect"],
      lifetime_seconds,
      parent_id,
      workspace_id,
      now,
    },
    own,
  );
  try {
    await store.commit([isKeyStill({ id: parent_id, now }), ...statements]);
    return token;
  } catch (error) {
    const isSpent = error instanceof CommitError && (error.reason === "constraint" || error.reason === "stale");
    if (isSpent) return undefined;
    throw error;
  }
};

/** Tells of a try that was refused. Never rejects: anyone who tries is refused all the same. */
export const noteFailedSignIn = async ({ store, clock }: Deps, user: User): Promise<void> => {
  await store
    .commit([signInEntry(user, clock.now(), 401)])
    .catch((error) => log("http").warn("a failed sign-in could not be noted: {error}", { error }));
};

/** Deletes the key of the request; what was opened with it ends. */
export const signOut = async (
  { store, clock, topics }: DomainContext,
  { user_id, username, key_id }: UserCaller,
): Promise<void> => {
  await store.commit([
    deleteKey(key_id),
    audited({ now: clock.now(), action: "logout", resource_type: "api_key", target: username, user_id }),
  ]);
  topics.publish("key_gone", key_id, {});
};

type UsedKey = Pick<ApiKey, "login_type" | "lifetime_seconds" | "expires_at" | "user_id"> &
  Pick<User, "username" | "status"> & { readonly key_id: string };

/** Notes the use of a key, which wakes up its user. Nobody waits for it, and a failure only means that it is noted later. */
export const noteKeyUse = ({ store }: Pick<Deps, "store">, key: UsedKey, now: number, seen: Seen): void => {
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
    ...wokenUp({ id: key.user_id, username: key.username, status: key.status }, now),
  ];
  // Anyone who has used a key has, whatever becomes of the request.
  const noted = besideRequest(() => store.commit(writes));
  noted.catch((error) => {
    if (!(error instanceof PassedOn)) log("http").warn("the use of a key was not noted", { error });
  });
};
