// Creates API keys: `<id>-<secret>`, of which only the ID and a hash of the secret are stored (facts/platform 8.2, rule ID-8).
import { keyId, keySecret, sha256 } from "#base/ids.ts";
import type { Statement } from "#db/engine/sql.ts";
import type { ApiKey } from "#db/users/api-keys.ts";
import { insertKey } from "#db/users/api-keys.ts";
import { guardUser } from "#db/users/users.ts";

/** A session lasts a day and is extended by use. */
export const LOGIN_TTL_SECONDS = 86_400;

/** The login type of keys granted to applications (src/domain/oauth2). */
export const GRANTED = "oauth2_provider_app";

/** Returns whether this is a session key, which is extended by use and revoked with the other sessions. */
export const isSignIn = ({ login_type }: Pick<ApiKey, "login_type">): boolean =>
  login_type !== "token" && login_type !== GRANTED;

export type NewKey = {
  user_id: string;
  /** `password` is a sign-in, `token` was created on the tokens page, `oauth2_provider_app` was granted to an application. */
  login_type: "password" | "token" | "oidc" | typeof GRANTED;
  token_name?: string;
  /** Its scopes; default: full access. */
  scopes?: readonly string[];
  allowed_addresses?: readonly string[];
  /** The address and program that requested it. */
  seen?: { readonly ip_address: string; readonly user_agent: string };
  lifetime_seconds: number;
  /** The key it is derived from and ends with. */
  parent_id?: string;
  /** The only workspace it is valid for. */
  workspace_id?: string | undefined;
  /** Who created it for the user, if it was somebody else. */
  created_by?: string | undefined;
  /** When the user proved which factors. */
  proved?: Partial<ApiKey>;
  now: number;
};

/** Returns the scopes of a key. */
export const listScopes = ({ scope, scopes }: Pick<ApiKey, "scope" | "scopes">): readonly string[] =>
  scopes.length > 0 ? scopes : [scope];

/**
 * Returns the columns that store scopes. Only the two original scopes are stored in `scope`, each alone; all others are stored as
 * `limited`, which an older server rejects.
 */
export const toScopeColumns = (scopes: readonly string[]): Pick<ApiKey, "scope" | "scopes"> => {
  const [only, ...more] = scopes.includes("all") ? ["all"] : scopes;
  const isOriginal = more.length === 0 && (only === "all" || only === "application_connect");
  return { scope: isOriginal ? only : "limited", scopes: isOriginal ? [] : [...scopes] };
};

/**
 * Returns the key's text, which is shown only once, and the statements that store its hash; they fail as `stale` when its user has been
 * deleted (rule ID-26). `id` and `secret` are given when it was created before.
 */
export const createKey = (
  key: NewKey,
  { id, secret }: { id: string; secret: string } = { id: keyId(), secret: keySecret() },
): { id: string; token: string; statements: Statement[]; row: ApiKey } => {
  const row = {
    id,
    user_id: key.user_id,
    secret_hash: sha256(secret),
    token_name: key.token_name ?? "",
    login_type: key.login_type,
    ...toScopeColumns(key.scopes ?? ["all"]),
    allowed_addresses: [...(key.allowed_addresses ?? [])],
    ip_address: "",
    user_agent: "",
    ...key.seen,
    lifetime_seconds: key.lifetime_seconds,
    created_at: key.now,
    updated_at: key.now,
    last_used: key.now,
    expires_at: key.now + key.lifetime_seconds * 1000,
    password_proved_at: null,
    factor_proved_at: null,
    parent_id: key.parent_id ?? null,
    created_by: key.created_by ?? null,
    workspace_id: key.workspace_id ?? null,
    ...key.proved,
  };
  return { id, token: `${id}-${secret}`, statements: [guardUser({ id: key.user_id }), insertKey(row)], row };
};
