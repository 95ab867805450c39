// Creates, restricts and revokes keys (rules ID-8 to ID-10, ID-22). Everything opened with a key ends with it.
import type { Static } from "@sinclair/typebox";
import { conflict, invalidField } from "#base/errors.ts";
import { keyId } from "#base/ids.ts";
import type { Statement } from "#db/engine/sql.ts";
import { insertNotification } from "#db/notifications/notifications.ts";
import {
  type ApiKey,
  deleteKey,
  deleteSessionsByUser,
  findKey,
  guardKey,
  listKeysCreatedBy,
  listSessions,
  updateKey,
} from "#db/users/api-keys.ts";
import { findUser } from "#db/users/users.ts";
import { markLossesOfKey, markLossesOfUser } from "#db/workspaces/sharing.ts";
import type { CreateTokenRequest, UpdateTokenRequest } from "#schema/users/api-key.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { canEnterWorkspaces, hasScope } from "#schema/users/scopes.ts";
import type { DomainContext } from "../context.ts";
import { endProvisionerKeysCreatedBy } from "../provisioners/keys.ts";
import { areWithin } from "./allowed-addresses.ts";
import { computeSecondsLeft, parseScopeNames, requireNotOutlived, requireWithinOwn } from "./api-key.ts";
import { auditKeyChanged } from "./audit.ts";
import type { KnownUser } from "./find.ts";
import { createKey, GRANTED, LOGIN_TTL_SECONDS, listScopes, toScopeColumns } from "./keys.ts";
import { parseLifetimeSeconds } from "./lifetime.ts";
import { toTakenConflict } from "./name-conflicts.ts";
import type { KeyClient } from "./sign-in.ts";

/**
 * Returns a key like a sign-in's, which is shown only once. Created with a token, it is a token that ends no later. Rejects with 403 for
 * access beyond the caller's own.
 */
export const createSessionKey = async (
  ctx: DomainContext,
  owner: KnownUser,
  caller: UserCaller,
  seen: KeyClient,
): Promise<string> => {
  const now = ctx.clock.now();
  const allowed_addresses = await requireWithinOwn(ctx, caller, { scopes: ["all"], allowed_addresses: [] });
  const secondsLeft = await computeSecondsLeft(ctx, caller, owner.id);
  const isFromSession = secondsLeft === Number.POSITIVE_INFINITY;
  const { token, statements, row } = createKey({
    user_id: owner.id,
    login_type: isFromSession ? "password" : "token",
    token_name: isFromSession ? "" : `session-${keyId()}`,
    lifetime_seconds: Math.min(LOGIN_TTL_SECONDS, secondsLeft),
    now,
    allowed_addresses,
    seen,
    created_by: await findCreator(ctx, owner, caller),
  });
  await ctx.store.commit([
    guardKey({ id: caller.key_id, now }),
    ...statements,
    auditKeyChanged(row, { after: row }, now),
    ...notifyOwner(owner, caller, row),
  ]);
  ctx.topics.publish("notified", owner.id, {});
  return token;
};

/**
 * Returns the token, which is shown only once. Rejects with 400, with 403 for access beyond the caller's own, and with 409 for a name that
 * is taken.
 */
export const createToken = async (
  ctx: DomainContext,
  owner: KnownUser,
  caller: UserCaller,
  input: Static<typeof CreateTokenRequest>,
): Promise<string> => {
  if (input.allow_list?.some(({ type, id }) => type !== "*" || id !== "*")) {
    throw invalidField("allow_list", "Tokens cannot be bound to single resources.");
  }
  const now = ctx.clock.now();
  const scopes = parseScopeNames(input.scope, input.scopes);
  const requested = { scopes, allowed_addresses: input.allowed_addresses ?? [] };
  const { token, statements, row } = createKey({
    user_id: owner.id,
    login_type: "token",
    now,
    scopes,
    allowed_addresses: await requireWithinOwn(ctx, caller, requested),
    token_name: input.token_name || `token-${keyId()}`,
    lifetime_seconds: parseLifetimeSeconds(
      input.lifetime,
      owner.roles,
      await computeSecondsLeft(ctx, caller, owner.id),
    ),
    created_by: await findCreator(ctx, owner, caller),
  });
  await ctx.store
    .commit([
      guardKey({ id: caller.key_id, now }),
      ...statements,
      auditKeyChanged(row, { after: row }, now),
      ...notifyOwner(owner, caller, row),
    ])
    .catch((error) =>
      Promise.reject(toTakenConflict(error, { token_name: "token_name", api_keys_name: "token_name" })),
    );
  ctx.topics.publish("notified", owner.id, {});
  return token;
};

/** Returns the person who creates the key for the user. A key that is created with such a key has the same creator. */
const findCreator = async (
  { store }: DomainContext,
  owner: KnownUser,
  caller: UserCaller,
): Promise<string | undefined> =>
  caller.user_id === owner.id
    ? ((await store.get(findKey({ id: caller.key_id })))?.created_by ?? undefined)
    : caller.user_id;

/** Notifies a person for whom somebody else creates a key. A service account reads no notifications. */
const notifyOwner = (owner: KnownUser, caller: UserCaller, { id, token_name, created_at: now }: ApiKey): Statement[] =>
  caller.user_id === owner.id || owner.login_type === "none"
    ? []
    : [
        insertNotification({
          now,
          user_id: owner.id,
          kind: "key_created",
          values: { person: caller.username, name: token_name || "a session key" },
          path: "/account/tokens",
          dedupe: `key_created:${id}`,
        }),
      ];

/**
 * Revokes the keys that an owner of the deployment has created for people, because they may no longer create them. Keys of service accounts
 * stay: the deployment's programs use them. Also revokes worker keys that the person could not create any more.
 */
export const endKeysCreatedBy = async (ctx: DomainContext, created_by: string): Promise<void> => {
  await endProvisionerKeysCreatedBy(ctx, created_by);
  const { store, topics, clock } = ctx;
  const keys = await store.all(listKeysCreatedBy({ created_by }));
  if (keys.length === 0) return;
  const now = clock.now();
  await store.commit(
    keys.flatMap((key) => [...recordLoss(key, now), deleteKey(key.id), auditKeyChanged(key, { before: key }, now)]),
  );
  for (const { id } of keys) topics.publish("key_gone", id, {});
};

/** Like `endKeysCreatedBy`, after a change of roles; does nothing while the user is an owner. */
export const endKeysOfFormerOwner = async (ctx: DomainContext, user_id: string): Promise<void> => {
  const user = await ctx.store.get(findUser({ id: user_id }));
  if (!user?.roles.includes("owner")) await endKeysCreatedBy(ctx, user_id);
};

/**
 * Returns the updated key. Rejects with 403 for access beyond the caller's own, and for more access if the key ends later than the
 * caller's.
 */
export const changeToken = async (
  ctx: DomainContext,
  key: ApiKey,
  caller: UserCaller,
  input: Static<typeof UpdateTokenRequest>,
): Promise<ApiKey> => {
  if (key.workspace_id !== null)
    throw conflict("A key for one workspace cannot be changed. Delete it and create another.");
  const scopes = input.scopes === undefined ? listScopes(key) : parseScopeNames(undefined, input.scopes);
  const requested = { scopes, allowed_addresses: input.allowed_addresses ?? key.allowed_addresses };
  const allowed_addresses = await requireWithinOwn(ctx, caller, requested);
  const isWider =
    !scopes.every((scope) => hasScope(listScopes(key), scope)) || !areWithin(allowed_addresses, key.allowed_addresses);
  if (isWider) await requireNotOutlived(ctx, caller, key);
  const now = ctx.clock.now();
  const patch = { ...toScopeColumns(scopes), allowed_addresses, updated_at: now };
  const changed = { ...key, ...patch };
  await ctx.store.commit([
    guardKey({ id: caller.key_id, now }),
    ...(canEnterWorkspaces(scopes) ? [] : recordLoss(key, now)),
    updateKey(key.id, patch, { expect: 1 }),
    auditKeyChanged(key, { before: key, after: changed }, now),
  ]);
  // Open connections were authorized under the old scopes and networks.
  ctx.topics.publish("key_gone", key.id, {});
  return changed;
};

/**
 * Expires a key, which stays in the list of expired tokens. An application's grant is deleted instead, or its next refresh would renew it.
 */
export const expireKey = async (ctx: DomainContext, key: ApiKey, caller: UserCaller): Promise<void> => {
  if (key.login_type === GRANTED) return removeKey(ctx, key, caller);
  const { store, clock, topics } = ctx;
  const now = clock.now();
  const patch = { expires_at: now, updated_at: now };
  if (key.expires_at > now) {
    await store.commit([
      ...recordLoss(key, now),
      updateKey(key.id, patch),
      auditKeyChanged(key, { before: key, after: { ...key, ...patch } }, now),
    ]);
  }
  topics.publish("key_gone", key.id, {});
};

/** Deletes a token or a session. */
export const removeKey = async (
  { store, clock, topics }: DomainContext,
  key: ApiKey,
  caller: UserCaller,
): Promise<void> => {
  const now = clock.now();
  // Agents' tokens are not renewed when a client signs out with its own key, because its user continues to use the workspaces.
  const losses = key.id === caller.key_id ? [] : recordLoss(key, now);
  await store.commit([...losses, deleteKey(key.id), auditKeyChanged(key, { before: key }, now)]);
  topics.publish("key_gone", key.id, {});
};

/** A program with the key may have copied tokens of agents, which end with it (rule AG-28). */
const recordLoss = (key: ApiKey, now: number): Statement[] =>
  canEnterWorkspaces(listScopes(key)) ? [markLossesOfKey(key, now)] : [];

/** Revokes all sessions of the user except the caller's. Tokens are kept. */
export const endOtherSessions = async (
  { store, clock, topics }: DomainContext,
  { id }: KnownUser,
  caller: UserCaller,
): Promise<void> => {
  const now = clock.now();
  const keys = await store.all(listSessions({ user_id: id, now }));
  const ended = keys.filter((key) => key.id !== caller.key_id);
  const entries = ended.map((key) => auditKeyChanged(key, { before: key }, now));
  // A person who ends all other sessions may have lost a device.
  await store.commit([
    ...(ended.length > 0 ? [markLossesOfUser(id, now)] : []),
    deleteSessionsByUser({ user_id: id, except: caller.key_id }),
    ...entries,
  ]);
  for (const key of ended) topics.publish("key_gone", key.id, {});
};
