// Exchanges codes and refresh tokens for access tokens (rules OA-10 to OA-14). An access token is a key of the user that gets a new secret
// with each refresh: open connections continue, and the previous token becomes invalid.
import { createHash } from "node:crypto";
import { keySecret, linkToken, sha256 } from "#base/ids.ts";
import { CommitError } from "#db/engine/store.ts";
import {
  findGrantByCode,
  findGrantByFamily,
  type OAuth2GrantRow,
  redeemGrant,
  rotateGrant,
} from "#db/oauth2/grants.ts";
import { guardKey, updateKey } from "#db/users/api-keys.ts";
import { findUser, type User } from "#db/users/users.ts";
import type { DomainContext } from "../context.ts";
import { toScopeColumns } from "../users/keys.ts";
import { getMaxSeconds } from "../users/lifetime.ts";
import type { Client } from "./clients.ts";
import { endGrant } from "./grants.ts";
import { OAuth2Problem } from "./problem.ts";
import { isRegistered } from "./redirects.ts";
import { narrowScopes } from "./scopes.ts";

/** Lifetime of an access token, and of an unused grant. */
const ACCESS_TTL_SECONDS = 3600;
const UNUSED_TTL_SECONDS = 30 * 24 * 3600;
const VERIFIER = /^[A-Za-z0-9._~-]{43,128}$/;

export type Tokens = {
  readonly access_token: string;
  readonly token_type: "Bearer";
  readonly expires_in: number;
  readonly refresh_token: string;
  readonly scope: string;
};

const invalidGrant = (description = "It is invalid, expired or revoked."): OAuth2Problem =>
  new OAuth2Problem("invalid_grant", description);

/** Returns the user of a grant. Throws `invalid_grant` if they are deleted or suspended. */
const loadPerson = async ({ store }: DomainContext, { user_id }: OAuth2GrantRow): Promise<User> => {
  const user = await store.get(findUser({ id: user_id }));
  if (!user || user.deleted || user.status === "suspended") throw invalidGrant();
  return user;
};

/** Creates new secrets of a grant, and the statements that store them. */
const createSecrets = (
  grant: OAuth2GrantRow,
  user: User,
  scopes: readonly string[],
  now: number,
  family = linkToken(),
) => {
  const secret = keySecret();
  const refresh_token = `${family}.${keySecret()}`;
  const unusedSeconds = Math.min(UNUSED_TTL_SECONDS, getMaxSeconds(user.roles));
  const patch = {
    secret_hash: sha256(secret),
    ...toScopeColumns(scopes),
    lifetime_seconds: ACCESS_TTL_SECONDS,
    updated_at: now,
    expires_at: now + ACCESS_TTL_SECONDS * 1000,
  };
  const tokens: Tokens = {
    access_token: `${grant.key_id}-${secret}`,
    token_type: "Bearer",
    expires_in: ACCESS_TTL_SECONDS,
    refresh_token,
    scope: scopes.join(" "),
  };
  return {
    tokens,
    family_hash: sha256(family),
    refresh_hash: sha256(refresh_token),
    refresh_expires_at: now + unusedSeconds * 1000,
    keyUpdate: updateKey(grant.key_id, patch, { expect: 1 }),
  };
};

/** Revokes a grant whose code or refresh token was used twice, because a copy may be in other hands. */
const revokeReused = async (ctx: DomainContext, grant: OAuth2GrantRow): Promise<never> => {
  await endGrant(ctx, grant.key_id, { reason: "a code or refresh token was used twice" });
  throw invalidGrant("It was already used. All tokens issued from it were revoked.");
};

const isStale = (error: unknown): boolean => error instanceof CommitError && error.reason === "stale";

export type CodeProof = { readonly code: string; readonly redirect_uri: string; readonly code_verifier: string };

/** Throws `invalid_grant`. A second use revokes what the first one created. */
export const redeemCode = async (ctx: DomainContext, { app, noted }: Client, proof: CodeProof): Promise<Tokens> => {
  const now = ctx.clock.now();
  const grant = await ctx.store.get(findGrantByCode({ code_hash: sha256(proof.code) }));
  if (!grant || grant.app_id !== app.id) throw invalidGrant();
  if (grant.redeemed_at !== null) return revokeReused(ctx, grant);
  if (grant.code_expires_at <= now) throw invalidGrant();
  if (grant.redirect_uri !== proof.redirect_uri)
    throw invalidGrant("redirect_uri doesn't match the authorization request.");
  if (!isRegistered(grant.redirect_uri, app.redirect_uris))
    throw invalidGrant("redirect_uri was removed from the application.");
  if (!VERIFIER.test(proof.code_verifier) || toChallenge(proof.code_verifier) !== grant.code_challenge) {
    throw invalidGrant("code_verifier doesn't match.");
  }
  const user = await loadPerson(ctx, grant);
  const { tokens, keyUpdate, ...hashes } = createSecrets(grant, user, grant.scopes, now);
  const { key_id } = grant;
  const redemption = redeemGrant({ key_id, now, ...hashes });
  await ctx.store
    .commit([guardKey({ id: key_id, now }), redemption, keyUpdate, ...noted])
    .catch((error) => (isStale(error) ? revokeReused(ctx, grant) : Promise.reject(error)));
  return tokens;
};

const toChallenge = (verifier: string): string => createHash("sha256").update(verifier).digest("base64url");

export type RefreshProof = { readonly refresh_token: string; readonly scope: string | undefined };

/** Throws `invalid_grant` or `invalid_scope`. Using a replaced refresh token revokes the grant. */
export const refresh = async (ctx: DomainContext, { app, noted }: Client, proof: RefreshProof): Promise<Tokens> => {
  const now = ctx.clock.now();
  const [family = ""] = proof.refresh_token.split(".");
  const grant = await ctx.store.get(findGrantByFamily({ family_hash: sha256(family) }));
  if (!grant || grant.app_id !== app.id) throw invalidGrant();
  const known_hash = sha256(proof.refresh_token);
  if (grant.refresh_hash !== known_hash) return revokeReused(ctx, grant);
  if ((grant.refresh_expires_at ?? 0) <= now) throw invalidGrant();
  const scopes = narrowScopes(proof.scope, grant.scopes);
  const user = await loadPerson(ctx, grant);
  const { tokens, keyUpdate, refresh_hash, refresh_expires_at } = createSecrets(grant, user, scopes, now, family);
  const { key_id } = grant;
  const rotation = rotateGrant({ key_id, now, known_hash, refresh_hash, refresh_expires_at });
  await ctx.store
    .commit([rotation, keyUpdate, ...noted])
    .catch((error) => (isStale(error) ? revokeReused(ctx, grant) : Promise.reject(error)));
  return tokens;
};
