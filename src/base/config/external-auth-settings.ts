// Settings of external account providers such as git hosts (rule EA-4): the setting `external_auth`, a list of providers, and the
// non-public addresses the server may call. Secrets are never shown.
import { networks } from "./kinds.ts";
import { isMapping, isText, isTextList, listOfMappings } from "./list-of-mappings.ts";
import { setting } from "./setting.ts";

export const PROVIDER_TYPES = ["github", "gitlab", "bitbucket-cloud", "bitbucket-server", "gitea", "generic"] as const;
export type ProviderType = (typeof PROVIDER_TYPES)[number];

/** One provider as configured by the operator. Defaults depend on the type (src/git/provider.ts). */
export type ProviderSetting = {
  readonly id: string;
  readonly type: ProviderType;
  readonly client_id: string;
  readonly client_secret?: string;
  /** The URL of a self-hosted service: https://git.example.com. */
  readonly base_url?: string;
  readonly auth_url?: string;
  readonly token_url?: string;
  readonly validate_url?: string;
  readonly revoke_url?: string;
  readonly device_code_url?: string;
  readonly scopes?: readonly string[];
  /** Matches the URLs that the provider's tokens are for. */
  readonly regex?: string;
  readonly display_name?: string;
  readonly display_icon?: string;
  /** People enter a code at the provider instead of being redirected. */
  readonly device_flow?: boolean;
  /** Expired tokens are not refreshed; people must link again. */
  readonly no_refresh?: boolean;
};

const URLS = ["base_url", "auth_url", "token_url", "validate_url", "revoke_url", "device_code_url"] as const;
const TEXTS = ["client_secret", "regex", "display_name", "display_icon"] as const;
const FLAGS = ["device_flow", "no_refresh"] as const;
const KNOWN_KEYS = new Set<string>(["id", "type", "client_id", "scopes", ...URLS, ...TEXTS, ...FLAGS]);

const isUrl = (value: unknown): boolean =>
  isText(value) && URL.canParse(value) && /^https?:$/.test(new URL(value).protocol) && new URL(value).username === "";

const isPattern = (value: unknown): boolean => {
  try {
    new RegExp(String(value));
    return true;
  } catch {
    return false;
  }
};

/** Returns what is wrong with an entry. Never includes values, because one of them is a secret. */
const findMistake = (entry: unknown): string | undefined => {
  if (!isMapping(entry)) return "must be a mapping";
  const unknown = Object.keys(entry).find((key) => !KNOWN_KEYS.has(key));
  if (unknown !== undefined) return `has the unknown key ${unknown}`;
  if (!isText(entry.id) || !/^[a-z0-9][a-z0-9_-]{0,63}$/.test(entry.id)) return "needs an id of a-z, 0-9, _ and -";
  if (!PROVIDER_TYPES.some((type) => type === entry.type)) return `needs a type: ${PROVIDER_TYPES.join(", ")}`;
  if (!isText(entry.client_id)) return "needs a client_id";
  for (const key of URLS)
    if (entry[key] !== undefined && !isUrl(entry[key])) return `${key} must be an http or https URL`;
  for (const key of TEXTS) if (entry[key] !== undefined && !isText(entry[key])) return `${key} must be text`;
  for (const key of FLAGS)
    if (entry[key] !== undefined && typeof entry[key] !== "boolean") return `${key} must be true or false`;
  if (entry.regex !== undefined && !isPattern(entry.regex)) return "regex must be a regular expression";
  if (entry.scopes !== undefined && !isTextList(entry.scopes)) return "scopes must be a list of strings";
  if (entry.type === "generic") {
    const needed = entry.device_flow === true ? ["device_code_url", "token_url"] : ["auth_url", "token_url"];
    const missing = needed.find((key) => entry[key] === undefined);
    if (missing !== undefined) return `of type generic needs ${missing}`;
  }
  if (entry.type === "bitbucket-server" && entry.base_url === undefined)
    return "of type bitbucket-server needs base_url";
  if (
    entry.device_flow === true &&
    entry.device_code_url === undefined &&
    entry.type !== "github" &&
    entry.type !== "gitlab"
  ) {
    return "with device_flow needs device_code_url";
  }
  return undefined;
};

const providers = listOfMappings<ProviderSetting>("id, type and client_id", findMistake);

export const EXTERNAL_AUTH_SETTINGS = {
  external_auth: setting(providers, [], {
    group: "External accounts",
    help: "Git hosts and other services that users can link accounts of, so that their workspaces can use them. See docs/configuration.md, External accounts.",
    secret: true,
  }),
  allowed_private_networks: setting(networks, [], {
    group: "External accounts",
    help: "Private networks that the server may connect to when a setting names a host there. If empty, none.",
  }),
} as const;
