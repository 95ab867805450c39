// Wire shapes of identity providers for administrators: a provider's configuration, and the result of testing it.
import { type Static, Type as t } from "@sinclair/typebox";
import { namedObject } from "../shape-names.ts";

const Roles = t.Array(t.String());

export const OidcProvider = namedObject("OidcProvider", {
  id: t.String({ description: "The ID of the provider, from the setting `oidc_providers`. Part of its redirect URI." }),
  name: t.String({ description: "The display name of the provider." }),
  issuer: t.String({ description: "The issuer URL, from which the server reads the provider's endpoints." }),
  client_id: t.String({ description: "The client ID that Slipway has at the provider." }),
  redirect_uri: t.String({ description: "The redirect URI to register with the provider." }),
  scopes: t.Array(t.String(), { description: "The scopes that sign-ins request." }),
  email_domains: t.Array(t.String(), { description: "The email domains that can sign in. If empty, all domains." }),
  sign_up: t.Boolean({ description: "Whether users without an account get one when they sign in." }),
  link_accounts: t.Boolean({ description: "Whether a verified email address signs in to the account that has it." }),
  trust_unverified_email: t.Boolean({
    description: "Whether email addresses are accepted that the provider doesn't report as verified.",
  }),
  sign_out_at_provider: t.Boolean({ description: "Whether signing out also ends the session at the provider." }),
  username_claim: t.String({ description: "The claim that new usernames are derived from." }),
  groups_claim: t.String({ description: "The claim that lists a user's groups at the provider." }),
  has_mapping: t.Boolean({ description: "Whether groups at the provider assign roles or memberships." }),
});
export type OidcProvider = Static<typeof OidcProvider>;

export const OidcProviders = t.Array(OidcProvider);

export const OidcTrialStarted = namedObject("OidcTrialStarted", {
  url: t.String({ description: "The URL of the provider's sign-in page. Redirect the browser to it." }),
});

export const OidcTrialRequest = namedObject("OidcTrialRequest", {
  query: t.String({
    maxLength: 8192,
    description: "The query of the URL to which the provider redirected the browser.",
  }),
});

export const OidcTrial = namedObject("OidcTrial", {
  claims: t.Record(t.String(), t.Unknown(), { description: "The provider's claims about the user." }),
  groups: t.Array(t.String(), { description: "The values of the groups claim; at most 200." }),
  group_count: t.Integer({ description: "The number of all groups, including groups that are not returned." }),
  remarks: t.Array(t.String(), { description: "Likely mistakes in the provider's settings." }),
  allowed: t.Boolean({ description: "Whether the user can sign in." }),
  message: t.String({ description: "What the sign-in would do, or why it would be rejected." }),
  detail: t.String({
    description: "The email address of the account or, if `allowed` is false, the details; may be empty.",
  }),
  roles: t.Union([Roles, t.Null()], {
    description: "The site roles that the user's groups assign; null if the provider doesn't manage roles.",
  }),
  memberships: t.Array(
    t.Object({
      organization: t.String({ description: "The name of the organization." }),
      member: t.Boolean({ description: "Whether the user would be a member after signing in." }),
      roles: { ...Roles, description: "The roles in the organization that the user's groups assign." },
      exists: t.Boolean({
        description: "Whether the organization exists. If false, the mapping names an unknown organization.",
      }),
    }),
    { description: "The organizations that the provider's mapping names." },
  ),
});
export type OidcTrial = Static<typeof OidcTrial>;
