// Wire shapes of identity providers for administrators: a provider's configuration, and the result of testing it.
import { type Static, Type as t } from "@sinclair/typebox";
import { namedObject } from "../named.ts";

const Roles = t.Array(t.String());

export const OidcProvider = namedObject("OidcProvider", {
  id: t.String(),
  name: t.String(),
  issuer: t.String(),
  client_id: t.String(),
  redirect_uri: t.String({ description: "To register at the provider." }),
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
  url: t.String({ description: "Where the browser goes: the provider's sign-in page." }),
});

export const OidcTrialRequest = namedObject("OidcTrialRequest", {
  query: t.String({
    maxLength: 8192,
    description: "What the provider sent the browser back with: the query of the address.",
  }),
});

export const OidcTrial = namedObject("OidcTrial", {
  claims: t.Record(t.String(), t.Unknown(), { description: "What the provider says of the person." }),
  groups: t.Array(t.String(), { description: "The values of the groups claim, 200 at most." }),
  group_count: t.Integer(),
  remarks: t.Array(t.String(), { description: "What looks like a mistake of the setting." }),
  allowed: t.Boolean({ description: "Whether this person may sign in." }),
  message: t.String({ description: "What signing in would do, or why it is refused." }),
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
