// Grants of users to applications: listing them, and revoking them immediately with everything opened with them (rules OA-15, OA-16).
import { notFound } from "#base/errors.ts";
import { isSameDigest, sha256 } from "#base/ids.ts";
import { findOAuth2App } from "#db/oauth2/apps.ts";
import { deletePendingGrants, findGrant, findGrantByFamily } from "#db/oauth2/grants.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import { deleteKey, findKey } from "#db/users/api-keys.ts";
import { markLossesOfUser } from "#db/workspaces/sharing.ts";
import { canEnterWorkspaces } from "#schema/users/scopes.ts";
import type { DomainContext } from "../context.ts";
import { listScopes } from "../users/keys.ts";
import type { Client } from "./clients.ts";

/**
 * Revokes a grant and everything opened with it. Also revokes the agents' tokens that the application may have read (rule AG-28), and the
 * codes with which it could get another grant. Does nothing if the grant has already ended. `additional` is for the audit log.
 */
export const endGrant = async (
  { store, clock, topics }: DomainContext,
  key_id: string,
  additional: Readonly<Record<string, string>> = {},
): Promise<void> => {
  const [grant, key] = [await store.get(findGrant({ key_id })), await store.get(findKey({ id: key_id }))];
  if (!grant || !key) return;
  const app = await store.get(findOAuth2App({ id: grant.app_id }));
  const now = clock.now();
  await store.commit([
    ...(canEnterWorkspaces(listScopes(key)) ? [markLossesOfUser(grant.user_id, now)] : []),
    deleteKey(key_id),
    deletePendingGrants({ user_id: grant.user_id, app_id: grant.app_id }),
    insertAudit({
      now,
      action: "delete",
      resource_type: "api_key",
      target: app?.name ?? key_id,
      additional: { key_id, application: grant.app_id, ...additional },
      before: key,
    }),
  ]);
  topics.publish("key_gone", key_id, {});
};

/** Revokes a grant of this user. Rejects with 404. */
export const endUserGrant = async (ctx: DomainContext, user_id: string, key_id: string): Promise<void> => {
  const grant = await ctx.store.get(findGrant({ key_id }));
  if (!grant || grant.user_id !== user_id) throw notFound();
  await endGrant(ctx, key_id);
};

/**
 * Revokes the grant of an access or refresh token that an application returns. Does nothing for an unknown token (RFC 7009 2.2) or one of
 * another application.
 */
export const revokeToken = async (ctx: DomainContext, { app }: Client, token: string): Promise<void> => {
  const [id = "", secret = ""] = token.split("-");
  const key = secret === "" ? undefined : await ctx.store.get(findKey({ id }));
  const isAccessToken = key !== undefined && isSameDigest(sha256(secret), key.secret_hash);
  const [family = ""] = token.split(".");
  const grant = await ctx.store.get(
    isAccessToken ? findGrant({ key_id: id }) : findGrantByFamily({ family_hash: sha256(family) }),
  );
  if (grant?.app_id === app.id) await endGrant(ctx, grant.key_id);
};
