// External-auth providers: the operator's settings completed with the defaults of their type (rule EA-4), and the git credentials for each
// type's token. Pure.
import type { ProviderSetting, ProviderType } from "#base/config/external-auth-settings.ts";

/** How a token is revoked: GitHub's API, or RFC 7009. */
export type Revocation = { readonly url: URL; readonly way: "github" | "standard" };

export type Provider = {
  readonly id: string;
  /** Tokens that were given at another place are not used; undefined for a provider that cannot change. */
  readonly place?: string;
  readonly type: ProviderType;
  /** The host's base URL without a trailing slash; empty if not configured. */
  readonly base_url: string;
  readonly client_id: string;
  readonly client_secret: string;
  /** Undefined if there is only the device flow. */
  readonly auth_url: URL | undefined;
  readonly token_url: URL;
  readonly validate_url: URL | undefined;
  readonly revocation: Revocation | undefined;
  readonly device_code_url: URL | undefined;
  readonly scopes: readonly string[];
  readonly pattern: RegExp | undefined;
  readonly display_name: string;
  readonly display_icon: string;
  readonly device_flow: boolean;
  readonly no_refresh: boolean;
  /** Where a token request contains the client's ID and secret. */
  readonly credentials: "body" | "header";
};

type ProviderDefaults = {
  readonly name: string;
  readonly base: string;
  readonly auth?: string;
  readonly token?: string;
  readonly validate?: string;
  readonly revoke?: string;
  readonly device?: string;
  readonly scopes: readonly string[];
  readonly credentials: Provider["credentials"];
};

// Paths below the service's address, or full URLs, from the services' documentation.
const PROVIDER_DEFAULTS: Readonly<Record<ProviderType, ProviderDefaults>> = {
  github: {
    name: "GitHub",
    base: "https://github.com",
    auth: "/login/oauth/authorize",
    token: "/login/oauth/access_token",
    device: "/login/device/code",
    scopes: ["repo", "workflow"],
    credentials: "body",
  },
  gitlab: {
    name: "GitLab",
    base: "https://gitlab.com",
    auth: "/oauth/authorize",
    token: "/oauth/token",
    validate: "/oauth/token/info",
    revoke: "/oauth/revoke",
    device: "/oauth/authorize_device",
    scopes: ["write_repository", "read_user"],
    credentials: "body",
  },
  "bitbucket-cloud": {
    name: "Bitbucket",
    base: "https://bitbucket.org",
    auth: "/site/oauth2/authorize",
    token: "/site/oauth2/access_token",
    validate: "https://api.bitbucket.org/2.0/user",
    scopes: ["account", "repository:write"],
    credentials: "header",
  },
  "bitbucket-server": {
    name: "Bitbucket",
    base: "",
    auth: "/rest/oauth2/latest/authorize",
    token: "/rest/oauth2/latest/token",
    validate: "/rest/api/latest/inbox/pull-requests/count",
    scopes: ["PUBLIC_REPOS", "REPO_READ", "REPO_WRITE"],
    credentials: "body",
  },
  gitea: {
    name: "Gitea",
    base: "https://gitea.com",
    auth: "/login/oauth/authorize",
    token: "/login/oauth/access_token",
    validate: "/api/v1/user",
    scopes: [],
    credentials: "header",
  },
  generic: { name: "", base: "", scopes: [], credentials: "header" },
};

/** Completes the settings with the type's defaults. */
export const toProvider = (given: ProviderSetting): Provider => {
  const known = PROVIDER_DEFAULTS[given.type];
  const base = (given.base_url ?? known.base).replace(/\/+$/, "");
  const joinUrl = (own: string | undefined, path: string | undefined): URL | undefined => {
    if (own !== undefined) return new URL(own);
    if (path === undefined) return undefined;
    return new URL(path.startsWith("/") ? base + path : path);
  };
  const token_url = joinUrl(given.token_url, known.token);
  if (!token_url) throw new Error(`the external-auth provider ${given.id} has no token_url`);
  const github = given.type === "github" ? toGithubApi(given, base) : undefined;
  return {
    id: given.id,
    type: given.type,
    base_url: base,
    client_id: given.client_id,
    client_secret: given.client_secret ?? "",
    auth_url: joinUrl(given.auth_url, known.auth),
    token_url,
    validate_url: joinUrl(given.validate_url, github ? `${github}/user` : known.validate),
    revocation: findRevocation(given, github, joinUrl(given.revoke_url, known.revoke)),
    device_code_url: joinUrl(given.device_code_url, known.device),
    scopes: given.scopes ?? known.scopes,
    pattern: findPattern(given, base),
    display_name: given.display_name ?? (known.name || given.id),
    display_icon: given.display_icon ?? "",
    device_flow: given.device_flow ?? false,
    no_refresh: given.no_refresh ?? false,
    credentials: known.credentials,
  };
};

const toGithubApi = ({ base_url }: ProviderSetting, base: string): string =>
  base_url === undefined || base === "https://github.com" ? "https://api.github.com" : `${base}/api/v3`;

const findRevocation = (
  given: ProviderSetting,
  github: string | undefined,
  url: URL | undefined,
): Revocation | undefined => {
  if (github === undefined) return url && { url, way: "standard" };
  const own = `${github}/applications/${encodeURIComponent(given.client_id)}/token`;
  return { url: url ?? new URL(own), way: "github" };
};

/** Returns the operator's pattern, or one for all URLs of the service's host. */
const findPattern = ({ regex }: ProviderSetting, base: string): RegExp | undefined => {
  if (regex !== undefined) return new RegExp(regex);
  if (base === "") return undefined;
  const { host } = new URL(base);
  return new RegExp(`^(?:https?://)?(?:[^/@]*@)?${host.replaceAll(/[.[\]]/g, "\\$&")}(?:/.*)?$`, "i");
};

/** Part of no URL, so that a pattern that matches it says nothing about the host. */
const NO_HOST = "\0";

/**
 * Returns whether a pattern covers an address without a user name; the scheme is optional. It must match the whole host from its beginning:
 * elsewhere, as in the path of another host or in front of a longer name, the same letters say nothing. A pattern may also name the beginning
 * of the path.
 */
export const coversAddress = ({ source, flags }: RegExp, address: string): boolean => {
  const [, scheme = "", host = "", path = ""] = /^(https?:\/\/)?([^/?#]*)(.*)$/is.exec(address) ?? [];
  if (host === "") return false;
  const whole = new RegExp(`^(?:${source})/?$`, flags);
  const prefixes = [...new Set([scheme, ""])];
  if (prefixes.some((prefix) => whole.test(`${prefix}${host}`) || whole.test(`${prefix}${host}/`))) return true;
  const beginning = new RegExp(`^(?:${source})`, flags);
  return prefixes.some((prefix) => {
    const end = beginning.exec(`${prefix}${host}${path}`)?.[0].length ?? 0;
    return end > prefix.length + host.length && !beginning.test(`${prefix}${NO_HOST}${path}`);
  });
};

/** Returns the credentials that git sends to the host (facts/platform 3.6). */
export const toGitCredential = (type: ProviderType, token: string): { username: string; password: string } => {
  if (type === "gitlab") return { username: "oauth2", password: token };
  if (type.startsWith("bitbucket")) return { username: "x-token-auth", password: token };
  return { username: token, password: "" };
};
