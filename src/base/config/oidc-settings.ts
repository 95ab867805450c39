// OpenID Connect sign-in providers: the setting `oidc_providers`. Secrets are never shown. Unknown keys are rejected, because these
// settings decide who can sign in (rule OI-1).
import { isMapping, isText, isTextList, listOfMappings } from "./list-of-mappings.ts";
import { setting } from "./setting.ts";

type Mapping<T> = Readonly<Record<string, T>>;

/** One provider as configured by the operator. */
export type OidcSetting = {
  /** Part of the redirect URI. */
  readonly id: string;
  readonly issuer: string;
  readonly client_id: string;
  readonly client_secret?: string;
  readonly scopes?: readonly string[];
  readonly display_name?: string;
  readonly icon?: string;
  /** Addresses in other domains are rejected. */
  readonly email_domains?: readonly string[];
  /** Creates an account for people who have none. */
  readonly sign_up?: boolean;
  /** A verified email address links to the account that has it. */
  readonly link_accounts?: boolean;
  /** Accepts addresses that the provider does not report as verified; they never link to an existing account. */
  readonly trust_unverified_email?: boolean;
  /** Signing out also ends the session at the provider. */
  readonly sign_out_at_provider?: boolean;
  readonly username_claim?: string;
  readonly groups_claim?: string;
  /** Maps groups to site roles. If set, each sign-in sets exactly these roles. */
  readonly roles?: Mapping<readonly string[]>;
  /** Maps groups to organizations and roles there. If set, each sign-in sets exactly these roles in the named organizations. */
  readonly organizations?: Mapping<Mapping<readonly string[]>>;
};

const TEXTS = ["client_secret", "display_name", "icon", "username_claim", "groups_claim"] as const;
const LISTS = ["scopes", "email_domains"] as const;
const FLAGS = ["sign_up", "link_accounts", "trust_unverified_email", "sign_out_at_provider"] as const;
const KNOWN_KEYS = new Set<string>([
  "id",
  "issuer",
  "client_id",
  "roles",
  "organizations",
  ...TEXTS,
  ...LISTS,
  ...FLAGS,
]);

const SITE_ROLES = ["owner", "auditor", "template-admin", "user-admin"];
const ORGANIZATION_ROLES = [
  ...["organization-admin", "organization-auditor", "organization-user-admin", "organization-template-admin"],
  "organization-workspace-creation-ban",
];

const hasOnlyRoles = (roles: readonly string[], value: unknown): boolean =>
  Array.isArray(value) && value.every((role) => roles.includes(role));

/** Plain HTTP is allowed only on this machine, because anyone on the network path could sign in as any user. */
const isIssuer = (value: unknown): boolean => {
  if (!isText(value) || !URL.canParse(value)) return false;
  const { protocol, hostname, username, search, hash } = new URL(value);
  const isThisMachine = hostname === "localhost" || hostname === "[::1]" || hostname.startsWith("127.");
  return (protocol === "https:" || (protocol === "http:" && isThisMachine)) && username + search + hash === "";
};

/** Returns what is wrong with an entry. Never includes values, because one of them is a secret. */
const findMistake = (one: unknown): string | undefined => {
  if (!isMapping(one)) return "must be a mapping";
  const unknown = Object.keys(one).find((key) => !KNOWN_KEYS.has(key));
  if (unknown !== undefined) return `has the unknown key ${unknown}`;
  if (!isText(one.id) || !/^[a-z0-9][a-z0-9-]{0,31}$/.test(one.id)) return "needs an id of a-z, 0-9 and -";
  if (!isIssuer(one.issuer)) return "needs an issuer: an https URL, or http on this machine";
  if (!isText(one.client_id)) return "needs a client_id";
  for (const key of TEXTS) if (one[key] !== undefined && !isText(one[key])) return `${key} must be text`;
  for (const key of LISTS)
    if (one[key] !== undefined && !isTextList(one[key])) return `${key} must be a list of strings`;
  for (const key of FLAGS) {
    if (one[key] !== undefined && typeof one[key] !== "boolean") return `${key} must be true or false`;
  }
  if (Array.isArray(one.scopes) && !one.scopes.includes("openid")) return "scopes must include openid";
  if (isText(one.icon) && !/^(https:\/\/|data:image\/)/.test(one.icon))
    return "icon must be an https or data:image URL";
  return findMappingMistake(one);
};

const findMappingMistake = ({ roles, organizations }: Record<string, unknown>): string | undefined => {
  if (roles !== undefined) {
    const isValid = isMapping(roles) && Object.values(roles).every((list) => hasOnlyRoles(SITE_ROLES, list));
    if (!isValid) return `roles must map groups to lists of ${SITE_ROLES.join(", ")}`;
  }
  if (organizations === undefined) return undefined;
  const isValid =
    isMapping(organizations) &&
    Object.values(organizations).every(
      (rolesByGroup) =>
        isMapping(rolesByGroup) && Object.values(rolesByGroup).every((list) => hasOnlyRoles(ORGANIZATION_ROLES, list)),
    );
  return isValid
    ? undefined
    : `organizations must map each group to organizations, and each organization to a list of ${ORGANIZATION_ROLES.join(", ")}`;
};

const providers = listOfMappings<OidcSetting>("id, issuer and client_id", findMistake);

export const OIDC_SETTINGS = {
  oidc_providers: setting(providers, [], {
    group: "Signing in",
    help: "OpenID Connect providers for signing in. See docs/signing-in.md. If a provider is not on the public internet, allowed_private_networks must include its network.",
    secret: true,
  }),
} as const;
