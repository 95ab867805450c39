// Wire shapes of identity providers for administrators: a provider's configuration, and the result of testing it.
import { type Static, Type as t } from "@sinclair/typebox";
import { namedObject } from "../shape-names.ts";

const Roles = t.Array(t.String());

export const OidcProvider = namedObject("OidcProvider", {
  id: t.String(),
  name: t.String(),
  issuer: t.String(),
  client_id: t.String(),
  redirect_uri: t.String({ description: "Register it at the provider." }),
  scopes: t.Array(t.String()),
  email_domains: t.Array(t.String(), { description: "Empty: addresses of every domain." }),
  sign_up: t.Boolean(),
  link_accounts: t.Boolean(),
  trust_unverified_email: t.Boolean(),
  sign_out_at_provider: t.Boolean(),
  username_claim: t.String(),
  groups_claim: t.String(),
  has_mapping: t.Boolean({ description: "Whether groups give roles or memberships." }),
});
export type OidcProvider = Static<typeof OidcProvider>;

export const OidcProviders = t.Array(OidcProvider);

export const OidcTrialStarted = namedObject("OidcTrialStarted", {
  url: t.String({ description: "The URL of the provider's sign-in page, to which the browser is redirected." }),
});

export const OidcTrialRequest = namedObject("OidcTrialRequest", {
  query: t.String({
    maxLength: 8192,
    description: "The query of the URL to which the provider redirected the browser.",
  }),
});

export const OidcTrial = namedObject("OidcTrial", {
  claims: t.Record(t.String(), t.Unknown(), { description: "The provider's data about the user." }),
  groups: t.Array(t.String(), { description: "The values of the groups claim, 200 at most." }),
  group_count: t.Integer(),
  remarks: t.Array(t.String(), { description: "Likely mistakes in the settings." }),
  allowed: t.Boolean({ description: "Whether this person may sign in." }),
  message: t.String({ description: "The effect of the sign-in, or the reason why it would be rejected." }),
  detail: t.String(),
  roles: t.Union([Roles, t.Null()], {
    description: "The site roles that the groups give; null: the provider does not decide.",
  }),
  memberships: t.Array(
    t.Object({
      organization: t.String(),
      member: t.Boolean(),
      roles: Roles,
      exists: t.Boolean({ description: "False: the mapping names an organization that does not exist." }),
    }),
  ),
});
export type OidcTrial = Static<typeof OidcTrial>;
