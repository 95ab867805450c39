// Periodically checks with providers that signed-in people are still active: a session in use is checked every hour. A person unknown to
// the provider loses the session; changed names, roles and memberships are applied (rule OI-13).
import { PeriodicChore } from "#actors/runtime/chore.ts";
import { AppError } from "#base/errors.ts";
import { log } from "#base/log.ts";
import { CommitError } from "#db/engine/store.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import { deleteKey, deleteSessionsByUser } from "#db/users/api-keys.ts";
import {
  claimOidcSession,
  findOtherOidcSession,
  listDueOidcSessions,
  type OidcSession,
  updateOidcSession,
} from "#db/users/oidc-sessions.ts";
import { findUser } from "#db/users/users.ts";
import { type OidcClient, OidcError, type SignInResult } from "#src/authentication/oidc.ts";
import { stopForbiddenLocal } from "../builds/local-limits.ts";
import type { DomainContext } from "../context.ts";
import { endKeysOfFormerOwner } from "../users/keys-change.ts";
import { admitPerson } from "./admit.ts";
import { toIdentity } from "./identity.ts";
import { openTokens, toTokenColumns } from "./session.ts";

const SWEEP_INTERVAL_MS = 60_000;
const RECHECK_INTERVAL_MS = 3_600_000;

export const oidcRechecks = (ctx: DomainContext): PeriodicChore =>
  new PeriodicChore({
    clock: ctx.clock,
    every_ms: SWEEP_INTERVAL_MS,
    work: async (now, isStopped) => {
      const due = await ctx.store.all(listDueOidcSessions({ before: now - RECHECK_INTERVAL_MS, now }));
      for (const { session, user_id } of due) if (!isStopped()) await recheck(ctx, session, user_id);
    },
    failed: (error) => log("http").warn("cannot check sessions at their providers: {error}", { error }),
  });

const recheck = async (ctx: DomainContext, session: OidcSession, user_id: string): Promise<void> => {
  const { key_id, checked_at: known_checked_at, provider } = session;
  const client = ctx.oidc.find(provider);
  // The provider is no longer configured: the session expires normally.
  if (!client) return;
  const isClaimed = await ctx.store
    .commit([claimOidcSession({ key_id, known_checked_at, now: ctx.clock.now() })])
    .then(() => true)
    .catch((error) => {
      if (error instanceof CommitError && error.reason === "stale") return false;
      throw error;
    });
  if (!isClaimed) return;
  const { refresh_token = "", subject } = openTokens(ctx, session);
  try {
    const completed = await client.refresh({ refresh_token, subject });
    await applyRecheck(ctx, client, session, user_id, completed);
  } catch (error) {
    const hasEnded = error instanceof OidcError && error.code === "invalid_grant";
    if (hasEnded || (error instanceof AppError && ["forbidden", "unauthenticated"].includes(error.kind))) {
      await endSession(ctx, session, user_id, error.message);
    } else log("http").warn("cannot check a session at {provider}: {error}", { provider, error });
  }
};

/** Applies what the provider says now. A provider that returns only the person's identity is fine too. */
const applyRecheck = async (
  ctx: DomainContext,
  client: OidcClient,
  { key_id }: OidcSession,
  user_id: string,
  completed: SignInResult,
): Promise<void> => {
  const { claims } = completed;
  const sessionUpdate = updateOidcSession(key_id, toTokenColumns(ctx, key_id, completed));
  if (claims.email === undefined) {
    await ctx.store.commit([sessionUpdate]);
    return;
  }
  const { user, changes } = await admitPerson(ctx, client, toIdentity(client, claims, { isRecheck: true }));
  if (user.id !== user_id) throw new AppError("forbidden", "The provider names another person.");
  await ctx.store.commit([sessionUpdate, ...changes]);
  if (changes.length === 0) return;
  for (const topic of ["access_changed", "shown_changed", "notified"] as const) ctx.topics.publish(topic, user.id, {});
  await endKeysOfFormerOwner(ctx, user.id);
  await stopForbiddenLocal(ctx, { owner_id: user.id });
};

const endSession = async (
  ctx: DomainContext,
  { key_id, provider }: OidcSession,
  user_id: string,
  reason: string,
): Promise<void> => {
  const user = await ctx.store.get(findUser({ id: user_id }));
  const now = ctx.clock.now();
  const isLast =
    user?.login_type === "oidc" &&
    !(await ctx.store.get(findOtherOidcSession({ key_id, user_id, since: now - 2 * RECHECK_INTERVAL_MS, now })));
  await ctx.store.commit([
    // Without another session that the provider still confirms, sessions of the command line end, too: they came from one of these.
    isLast ? deleteSessionsByUser({ user_id, except: "" }) : deleteKey(key_id),
    insertAudit({
      now,
      action: "logout",
      resource_type: "api_key",
      target: user?.username ?? "",
      user_id,
      additional: { provider, reason },
    }),
  ]);
  ctx.topics.publish("key_gone", isLast ? user_id : key_id, {});
};
