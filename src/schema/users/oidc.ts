// Wire shapes of identity providers for administrators: a provider's configuration, and the result of testing it.
import { type Static, Type as t } from "@sinclair/typebox";
import { namedObject } from "../shape-names.ts";

const Roles = t.Array(t.String());

export const OidcProvider = namedObject("OidcProvider", {
  id: t.String(),
  name: t.String(),
  issuer: t.String(),
  client_id: t.String(),
  redirect_uri: t.String({ description: "The redirect URI to register with the provider." }),
  scopes: t.Array(t.String()),
  email_domains: t.Array(t.String(), { description: "The email domains that can sign in. If empty, all domains." }),
  sign_up: t.Boolean(),
  link_accounts: t.Boolean(),
  trust_unverified_email: t.Boolean(),
  sign_out_at_provider: t.Boolean(),
  username_claim: t.String(),
  groups_claim: t.String(),
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
  group_count: t.Integer(),
  remarks: t.Array(t.String(), { description: "Likely mistakes in the provider's settings." }),
  allowed: t.Boolean({ description: "Whether the user can sign in." }),
  message: t.String({ description: "What the sign-in would do, or why it would be rejected." }),
  detail: t.String(),
  roles: t.Union([Roles, t.Null()], {
    description: "The site roles that the user's groups assign; null if the provider doesn't manage roles.",
  }),
  memberships: t.Array(
    t.Object({
      organization: t.String(),
      member: t.Boolean(),
      roles: Roles,
      exists: t.Boolean({
        description: "Whether the organization exists. If false, the mapping names an unknown organization.",
      }),
    }),
  ),
});
export type OidcTrial = Static<typeof OidcTrial>;
