// What a provider says of a person, as far as it is used here: small enough to travel with a sign-in that still needs a second factor.
// Everything in it comes from the outside; nothing else of the claims is kept.
import type { OidcSetting } from "#base/config/oidc-settings.ts";
import { hasOneForm, isEmailAddress, normalizeEmail } from "#base/email-address.ts";
import { AppError } from "#base/errors.ts";
import { asLine } from "#schema/text.ts";
import type { Claims, OidcClient } from "#src/authentication/oidc.ts";
import { claimAt } from "./claims.ts";
import { findMemberships, findRoles, readGroups } from "./groups.ts";

const MAX_NAME_LENGTH = 128;

/** What of a provider is needed once its claims are read. */
export type Provider = Pick<OidcClient, "setting" | "name">;

export type Identity = {
  readonly subject: string;
  /** Of an allowed domain, and vouched for by the provider or trusted (rule OI-4). */
  readonly email: string;
  /** The provider says that the address is theirs. Without it an address counts only where the setting trusts the provider's. */
  readonly isVerified: boolean;
  /** What the provider calls the person in one word; empty: nothing. */
  readonly username: string;
  /** Empty: the provider says none. */
  readonly name: string;
  /** The site roles that their groups give; absent: the provider does not decide about them. */
  readonly roles?: string[];
  /** By organization: the roles there, or null for no member. Organizations that the mapping does not name are not in it. */
  readonly memberships: Readonly<Record<string, string[] | null>>;
  /** What an administrator should know of their groups. */
  readonly remarks: readonly string[];
};

/** For a second factor: remarks were logged already. */
export const withoutRemarks = (identity: Identity): Identity => ({ ...identity, remarks: [] });

export const refusedSignIn = (message: string, detail = ""): AppError => new AppError("forbidden", message, { detail });

/** Throws 403 in words for people unless the provider vouches for an address that may come in. */
export const toIdentity = (client: Provider, claims: Claims): Identity => {
  const { setting } = client;
  const { groups, remarks } = readGroups(claims, setting);
  const roles = findRoles(setting, groups);
  const username = claimAt(claims, setting.username_claim ?? "preferred_username");
  return {
    subject: claims.sub,
    email: toEmail(client, claims),
    isVerified: isVerified(claims),
    username: typeof username === "string" ? username.slice(0, MAX_NAME_LENGTH) : "",
    name: typeof claims.name === "string" ? asLine(claims.name).slice(0, MAX_NAME_LENGTH).trim() : "",
    ...(roles ? { roles } : {}),
    memberships: findMemberships(setting, groups),
    remarks,
  };
};

/** Some providers write it as text. */
const isVerified = ({ email_verified }: Claims): boolean => email_verified === true || email_verified === "true";

const toEmail = ({ setting, name }: Provider, claims: Claims): string => {
  const { email } = claims;
  if (typeof email !== "string" || email === "") {
    throw refusedSignIn(
      `${name} did not send your email address.`,
      "Ask an administrator: the scope email may be missing.",
    );
  }
  // One that only looks like another one must not be taken for it.
  if (!isEmailAddress(email) || !hasOneForm(email)) {
    throw refusedSignIn(
      `${name} sent an email address that cannot be used here.`,
      "It is malformed, or holds control, invisible or look-alike characters.",
    );
  }
  if (!isVerified(claims) && setting.trust_unverified_email !== true) throw unverified(name, claims);
  if (!isAllowedDomain(setting, email)) throw refusedSignIn("Email addresses of this domain may not sign in here.");
  return normalizeEmail(email);
};

/** Microsoft Entra ID and others never say it, so a person can do nothing about it; the setting can. */
const unverified = (name: string, { email_verified }: Claims): AppError =>
  email_verified === undefined
    ? refusedSignIn(
        `${name} does not say whether your email address is verified.`,
        `An administrator can accept addresses from this provider with the setting trust_unverified_email.`,
      )
    : refusedSignIn(
        `Your email address is not verified at ${name}.`,
        "Verify it there, then sign in again. If that is not possible, an administrator can accept addresses from this provider with the setting trust_unverified_email.",
      );

const isAllowedDomain = ({ email_domains }: OidcSetting, email: string): boolean => {
  const domain = email.slice(email.lastIndexOf("@") + 1).toLowerCase();
  return !email_domains || email_domains.some((one) => one.toLowerCase().replace(/^@/, "") === domain);
};
