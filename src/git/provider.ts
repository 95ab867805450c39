// External-auth providers: the operator's settings completed with the defaults of their type (rule EA-4), and the git credentials for each
// type's token. Pure.

import type { ProviderSetting, ProviderType } from "#base/config/external-auth-settings.ts";
import { trimEnd } from "#base/text/trim.ts";

/** How a token is revoked: GitHub's API, or RFC 7009. */
export type Revocation = { readonly url: URL; readonly way: "github" | "standard" };

export type Provider = {
  readonly id: string;
  /** Identifies the provider's endpoints. Tokens from another place are not used; undefined for a provider that cannot change. */
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
export const toProvider = (setting: ProviderSetting): Provider => {
  const defaults = PROVIDER_DEFAULTS[setting.type];
  const base = trimEnd(setting.base_url ?? defaults.base, "/");
  const joinUrl = (override: string | undefined, path: string | undefined): URL | undefined => {
    if (override !== undefined) return new URL(override);
    if (path === undefined) return undefined;
    return new URL(path.startsWith("/") ? base + path : path);
  };
  const token_url = joinUrl(setting.token_url, defaults.token);
  if (!token_url) throw new Error(`the external-auth provider ${setting.id} has no token_url`);
  const github = setting.type === "github" ? toGithubApi(setting, base) : undefined;
  return {
    id: setting.id,
    type: setting.type,
    base_url: base,
    client_id: setting.client_id,
    client_secret: setting.client_secret ?? "",
    auth_url: joinUrl(setting.auth_url, defaults.auth),
    token_url,
    validate_url: joinUrl(setting.validate_url, github ? `${github}/user` : defaults.validate),
    revocation: findRevocation(setting, github, joinUrl(setting.revoke_url, defaults.revoke)),
    device_code_url: joinUrl(setting.device_code_url, defaults.device),
    scopes: setting.scopes ?? defaults.scopes,
    pattern: findPattern(setting, base),
    display_name: setting.display_name ?? (defaults.name || setting.id),
    display_icon: setting.display_icon ?? "",
    device_flow: setting.device_flow ?? false,
    no_refresh: setting.no_refresh ?? false,
    credentials: defaults.credentials,
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
  const apiUrl = `${github}/applications/${encodeURIComponent(given.client_id)}/token`;
  return { url: url ?? new URL(apiUrl), way: "github" };
};

/** Returns the operator's pattern, or one for all URLs of the service's host. */
const findPattern = ({ regex }: ProviderSetting, base: string): RegExp | undefined => {
  if (regex !== undefined) return new RegExp(regex);
  if (base === "") return undefined;
  const { host } = new URL(base);
  return new RegExp(`^(?:https?://)?(?:[^/@]*@)?${host.replaceAll(/[.[\]]/g, "\\$&")}(?:/.*)?$`, "i");
};

/** Not part of any URL: a pattern that also matches this in place of the host does not check the host. */
const NO_HOST = "\0";

/**
 * Returns whether a pattern covers an address without a user name; the scheme is optional. The pattern must match the complete host: it
 * does not cover the path of another host, or a longer host name. A pattern may also match the beginning of the path.
 */
export const coversAddress = ({ source, flags }: RegExp, address: string): boolean => {
  const [, scheme = "", host = "", path = ""] = /^(https?:\/\/)?([^/?#]*)(.*)$/is.exec(address) ?? [];
  if (host === "") return false;
  const hostPattern = new RegExp(`^(?:${source})/?$`, flags);
  const prefixes = [...new Set([scheme, ""])];
  if (prefixes.some((prefix) => hostPattern.test(`${prefix}${host}`) || hostPattern.test(`${prefix}${host}/`)))
    return true;
  const prefixPattern = new RegExp(`^(?:${source})`, flags);
  return prefixes.some((prefix) => {
    const end = prefixPattern.exec(`${prefix}${host}${path}`)?.[0].length ?? 0;
    return end > prefix.length + host.length && !prefixPattern.test(`${prefix}${NO_HOST}${path}`);
  });
};

/** Returns the credentials that git sends to the host (facts/platform 3.6). */
export const toGitCredential = (type: ProviderType, token: string): { username: string; password: string } => {
  if (type === "gitlab") return { username: "oauth2", password: token };
  if (type.startsWith("bitbucket")) return { username: "x-token-auth", password: token };
  return { username: token, password: "" };
};
