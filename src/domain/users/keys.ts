// Making API keys: `<id>-<secret>`, of which only the id and a hash of the secret are kept (facts/platform 8.2, rule ID-8).
import { keyId, keySecret, sha256 } from "#base/ids.ts";
import type { Statement } from "#db/engine/sql.ts";
import type { ApiKey } from "#db/users/api-keys.ts";
import { insertKey } from "#db/users/api-keys.ts";
import { guardUser } from "#db/users/users.ts";

/** A sign-in lasts a day and is extended by use. */
export const LOGIN_SECONDS = 86_400;

/** The login type of keys that people have granted to applications (src/domain/oauth2). */
export const GRANTED = "oauth2_provider_app";

/** True for the key of a sign-in: it is extended by use, and ended with the other sign-ins. */
export const isSignIn = ({ login_type }: Pick<ApiKey, "login_type">): boolean =>
  login_type !== "token" && login_type !== GRANTED;

export type NewKey = {
  user_id: string;
  /** `password` is a sign-in, `token` was made on the tokens page, `oauth2_provider_app` was granted to an application. */
  login_type: "password" | "token" | "oidc" | typeof GRANTED;
  token_name?: string;
  /** What it may be used for; default everything. */
  scopes?: readonly string[];
  allowed_addresses?: readonly string[];
  /** From where and with which program it was asked for. */
  seen?: { readonly ip_address: string; readonly user_agent: string };
  lifetime_seconds: number;
  /** The key it is made from, with which it ends. */
  parent_id?: string;
  /** The one workspace it is for. */
  workspace_id?: string | undefined;
  /** When anyone who signs in has proved what. */
  proved?: Partial<ApiKey>;
  now: number;
};

/** What a key may be used for. */
export const listScopes = ({ scope, scopes }: Pick<ApiKey, "scope" | "scopes">): readonly string[] =>
  scopes.length > 0 ? scopes : [scope];

/** How scopes are kept: one of the two that have always been alone, so that an older server refuses all others. */
export const scopeColumns = (scopes: readonly string[]): Pick<ApiKey, "scope" | "scopes"> => {
  const [only, ...more] = scopes.includes("all") ? ["all"] : scopes;
  const isAlone = more.length === 0 && (only === "all" || only === "application_connect");
  return { scope: isAlone ? only : "limited", scopes: isAlone ? [] : [...scopes] };
};

/** The key's text, to be shown once, and the statements that keep its hash, refused as `stale` when its user is deleted (rule ID-26). `id` and `secret` are given when it was made before. */
export const newKey = (
  key: NewKey,
  { id, secret }: { id: string; secret: string } = { id: keyId(), secret: keySecret() },
): { id: string; token: string; statements: Statement[]; row: ApiKey } => {
  const row = {
    id,
    user_id: key.user_id,
    secret_hash: sha256(secret),
    token_name: key.token_name ?? "",
    login_type: key.login_type,
    ...scopeColumns(key.scopes ?? ["all"]),
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
    workspace_id: key.workspace_id ?? null,
    ...key.proved,
  };
  return { id, token: `${id}-${secret}`, statements: [guardUser({ id: key.user_id }), insertKey(row)], row };
};
