// Tests a provider: shows its data about the person and what a sign-in with it would do. Writes nothing (rule OI-12).
import type { OidcSetting } from "#base/config/oidc-settings.ts";
import { AppError } from "#base/errors.ts";
import { findOrganizationByName } from "#db/users/organizations.ts";
import type { OidcProvider, OidcTrial } from "#schema/users/oidc.ts";
import { type Claims, SCOPES } from "#src/authentication/oidc.ts";
import type { DomainContext } from "../context.ts";
import { findMemberships, findRoles, readGroups } from "./groups.ts";
import { type Provider, toIdentity } from "./identity.ts";
import { findOrCreatePerson } from "./person.ts";
import { redirectUri } from "./providers.ts";

const MAX_GROUPS = 200;

/** Presents a provider's configuration without its secret. */
export const presentOidcProvider = ({ setting, name }: Provider, accessUrl: URL): OidcProvider => ({
  id: setting.id,
  name,
  issuer: setting.issuer,
  client_id: setting.client_id,
  redirect_uri: redirectUri(setting.id, accessUrl).href,
  scopes: [...(setting.scopes ?? SCOPES)],
  email_domains: [...(setting.email_domains ?? [])],
  sign_up: setting.sign_up === true,
  link_accounts: setting.link_accounts === true,
  trust_unverified_email: setting.trust_unverified_email === true,
  sign_out_at_provider: setting.sign_out_at_provider === true,
  username_claim: setting.username_claim ?? "preferred_username",
  groups_claim: setting.groups_claim ?? "groups",
  has_mapping: setting.roles !== undefined || setting.organizations !== undefined,
});

export const tryPerson = async (ctx: DomainContext, provider: Provider, claims: Claims): Promise<OidcTrial> => {
  const { setting } = provider;
  const { groups, remarks } = readGroups(claims, setting);
  return {
    claims,
    groups: groups.slice(0, MAX_GROUPS),
    group_count: groups.length,
    remarks: [...remarks],
    roles: findRoles(setting, groups) ?? null,
    memberships: await presentMemberships(ctx, setting, groups),
    ...(await simulateOutcome(ctx, provider, claims)),
  };
};

type Outcome = Pick<OidcTrial, "allowed" | "message" | "detail">;

const simulateOutcome = async (ctx: DomainContext, provider: Provider, claims: Claims): Promise<Outcome> => {
  try {
    const { user, memberships } = await findOrCreatePerson(ctx, provider, toIdentity(provider, claims));
    const message = memberships
      ? `Signing in creates the account ${user.username}.`
      : `Signing in opens the account ${user.username}.`;
    return { allowed: true, message, detail: user.email };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { allowed: false, message: error.message, detail: error.detail ?? "" };
  }
};

const presentMemberships = async (
  { store }: DomainContext,
  setting: OidcSetting,
  groups: readonly string[],
): Promise<OidcTrial["memberships"]> =>
  Promise.all(
    Object.entries(findMemberships(setting, groups)).map(async ([organization, roles]) => {
      const found = await store.get(findOrganizationByName({ name: organization }));
      return {
        organization,
        roles: roles ?? [],
        member: roles !== null || found?.is_default === true,
        exists: found !== undefined,
      };
    }),
  );
