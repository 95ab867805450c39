// The data about a person from a provider that is used here, small enough to travel with a sign-in that still needs a second factor. All of
// it is untrusted; the rest of the claims is discarded.
import type { OidcSetting } from "#base/config/oidc-settings.ts";
import { hasOneForm, isEmailAddress, normalizeEmail } from "#base/email-address.ts";
import { AppError } from "#base/errors.ts";
import { toLine } from "#schema/text.ts";
import type { Claims, OidcClient } from "#src/authentication/oidc.ts";
import { claimAt } from "./claims.ts";
import { findMemberships, findRoles, readGroups } from "./groups.ts";

const MAX_NAME_LENGTH = 128;

/** The parts of a provider that are used after its claims have been read. */
export type Provider = Pick<OidcClient, "setting" | "name">;

export type Identity = {
  readonly subject: string;
  /** In an allowed domain, and verified by the provider or trusted (rule OI-4). */
  readonly email: string;
  /** The provider has verified the address. Otherwise it is accepted only if the setting trusts the provider's addresses. */
  readonly isVerified: boolean;
  /** The provider's username for the person; empty if none exists. */
  readonly username: string;
  /** Empty if the provider sends none. */
  readonly name: string;
  /** Site roles from their groups; absent if the provider does not manage roles. */
  readonly roles?: string[];
  /** Roles by organization, or null for no membership. Organizations missing from the mapping are absent. */
  readonly memberships: Readonly<Record<string, string[] | null>>;
  /** Remarks for administrators about the person's groups. */
  readonly remarks: readonly string[];
};

/** For the second-factor step: the remarks were already logged. */
export const removeRemarks = (identity: Identity): Identity => ({ ...identity, remarks: [] });

export const signInForbidden = (message: string, detail = ""): AppError =>
  new AppError("forbidden", message, { detail });

/**
 * Throws 403 with a readable message unless the provider sends an address that is verified or trusted and allowed. Missing groups
 * mean no roles at a sign-in, but leave roles unchanged in two cases: the provider left the groups out because there are too many, or this is a
 * later check (`isRecheck`), because many providers send no groups at a refresh.
 */
export const toIdentity = (client: Provider, claims: Claims, { isRecheck = false } = {}): Identity => {
  const { setting } = client;
  const { groups, missing, remarks } = readGroups(claims, setting);
  const isUnknown = missing === "too-many" || (missing !== undefined && isRecheck);
  const roles = isUnknown ? undefined : findRoles(setting, groups);
  const username = claimAt(claims, setting.username_claim ?? "preferred_username");
  return {
    subject: claims.sub,
    email: toEmail(client, claims),
    isVerified: isVerified(claims),
    username: typeof username === "string" ? username.slice(0, MAX_NAME_LENGTH) : "",
    name: typeof claims.name === "string" ? toLine(claims.name).slice(0, MAX_NAME_LENGTH).trim() : "",
    ...(roles ? { roles } : {}),
    memberships: isUnknown ? {} : findMemberships(setting, groups),
    remarks,
  };
};

/** Some providers send it as a string. */
const isVerified = ({ email_verified }: Claims): boolean => email_verified === true || email_verified === "true";

const toEmail = ({ setting, name }: Provider, claims: Claims): string => {
  const { email } = claims;
  if (typeof email !== "string" || email === "") {
    throw signInForbidden(
      `${name} did not send your email address.`,
      "Ask an administrator: the scope email may be missing.",
    );
  }
  // An address must not pass for another one that looks the same.
  if (!isEmailAddress(email) || !hasOneForm(email)) {
    throw signInForbidden(
      `${name} sent an email address that cannot be used here.`,
      "It is malformed, or holds control, invisible or look-alike characters.",
    );
  }
  if (!isVerified(claims) && setting.trust_unverified_email !== true) throw emailUnverified(name, claims);
  if (!isAllowedDomain(setting, email)) throw signInForbidden("Email addresses of this domain may not sign in here.");
  return normalizeEmail(email);
};

/** Microsoft Entra ID and others never send the claim. The person cannot change that, so the error names the setting. */
const emailUnverified = (name: string, { email_verified }: Claims): AppError =>
  email_verified === undefined
    ? signInForbidden(
        `${name} does not say whether your email address is verified.`,
        `An administrator can accept addresses from this provider with the setting trust_unverified_email.`,
      )
    : signInForbidden(
        `Your email address is not verified at ${name}.`,
        "Verify it there, then sign in again. If that is not possible, an administrator can accept addresses from this provider with the setting trust_unverified_email.",
      );

const isAllowedDomain = ({ email_domains }: OidcSetting, email: string): boolean => {
  const domain = email.slice(email.lastIndexOf("@") + 1).toLowerCase();
  return !email_domains || email_domains.some((one) => one.toLowerCase().replace(/^@/, "") === domain);
};
