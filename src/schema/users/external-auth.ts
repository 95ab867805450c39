// Wire shapes of external auth: linked accounts at git hosts and other services (specification "Agent external auth response",
// facts/platform 3.6).
import { type Static, Type as t } from "@sinclair/typebox";
import { namedObject } from "../shape-names.ts";

/** The response to an agent. If not linked yet, only `url` is set. */
export const AgentExternalAuth = namedObject("AgentExternalAuth", {
  access_token: t.String({ description: "The access token; empty if the owner has not linked an account." }),
  username: t.String({ description: "The username for git over HTTPS." }),
  password: t.String({ description: "The password for git over HTTPS; may be empty." }),
  type: t.String({ description: "The provider's type, such as `github`." }),
  url: t.String({ description: "The URL at which the owner can link an account; empty if one is linked." }),
  expires_at: t.Optional(
    t.String({ format: "date-time", description: "When the token expires; absent if it doesn't." }),
  ),
  token_extra: t.Record(t.String(), t.Unknown(), { description: "Additional data from the provider." }),
});
export type AgentExternalAuth = Static<typeof AgentExternalAuth>;

const displayIcon = t.String({ description: "The URL or path of the provider's icon; may be empty." });

export const ExternalAuthProvider = namedObject("ExternalAuthProvider", {
  id: t.String({ description: "The ID of the provider, from the setting `external_auth`. Used in paths." }),
  type: t.String({ description: "The provider's type, such as `github` or `gitlab`." }),
  display_name: t.String(),
  display_icon: displayIcon,
  device: t.Boolean({ description: "Whether users link an account by entering a code at the provider." }),
  allow_refresh: t.Boolean({ description: "Whether expired tokens are renewed without the user." }),
  allow_validate: t.Boolean({ description: "Whether the server checks at the provider that tokens still work." }),
  supports_revocation: t.Boolean({
    description: "Whether unlinking an account also revokes its token at the provider.",
  }),
});
export type ExternalAuthProvider = Static<typeof ExternalAuthProvider>;

export const ExternalAuthLink = namedObject("ExternalAuthLink", {
  provider_id: t.String({ description: "The ID of the provider." }),
  created_at: t.String({ format: "date-time", description: "When the user linked the account." }),
  updated_at: t.String({ format: "date-time", description: "When the token was last replaced, or found not to work." }),
  expires: t.Optional(t.String({ format: "date-time", description: "When the token expires; absent if it doesn't." })),
  has_refresh_token: t.Boolean({
    description: "Whether the provider issued a token with which expired ones are renewed.",
  }),
  authenticated: t.Boolean({ description: "Whether the link works. If false, the user must link the account again." }),
  validate_error: t.String({ description: "Why the link no longer works; empty if it works." }),
});
export type ExternalAuthLink = Static<typeof ExternalAuthLink>;

export const ExternalAuthList = namedObject("ExternalAuthList", {
  providers: t.Array(ExternalAuthProvider, { description: "All providers of the server." }),
  links: t.Array(ExternalAuthLink, { description: "The accounts that the user has linked." }),
});
export type ExternalAuthList = Static<typeof ExternalAuthList>;

export const ExternalAuth = namedObject("ExternalAuth", {
  authenticated: t.Boolean({ description: "Whether the user has linked an account, and the link works." }),
  device: ExternalAuthProvider.properties.device,
  display_name: t.String(),
  supports_revocation: ExternalAuthProvider.properties.supports_revocation,
  user: t.Union(
    [
      t.Object({
        login: t.String({ description: "The username at the provider." }),
        name: t.String({ description: "The display name at the provider; may be empty." }),
        profile_url: t.String({ description: "The URL of the account's page; may be empty." }),
      }),
      t.Null(),
    ],
    {
      description: "The user's account at the provider, if the provider reports it.",
    },
  ),
});
export type ExternalAuth = Static<typeof ExternalAuth>;

export const ExternalAuthStart = namedObject("ExternalAuthStart", {
  url: t.String({ description: "The URL to redirect the browser to." }),
});

export const ExternalAuthCallback = namedObject("ExternalAuthCallback", {
  code: t.String({ minLength: 1, maxLength: 4096, description: "The authorization code that the provider returned." }),
  state: t.String({ minLength: 1, maxLength: 4096, description: "The state that was sent in the request." }),
});

export const ExternalAuthDevice = namedObject("ExternalAuthDevice", {
  device_code: t.String({ description: "The device code, for polling. Only this user can use it." }),
  user_code: t.String({ description: "The code that the user enters at the provider." }),
  verification_uri: t.String({ description: "The URL at which the user enters the code." }),
  expires_in: t.Integer({ description: "The lifetime of the codes, in seconds." }),
  interval: t.Integer({ description: "The interval between polls, in seconds." }),
});
export type ExternalAuthDevice = Static<typeof ExternalAuthDevice>;

export const ExternalAuthPoll = namedObject("ExternalAuthPoll", {
  device_code: t.String({
    minLength: 1,
    maxLength: 32_768,
    description: "The device code that the start operation returned.",
  }),
});

export const ExternalAuthUnlinked = namedObject("ExternalAuthUnlinked", {
  token_revoked: t.Boolean({ description: "Whether the provider has also revoked the token." }),
  token_revocation_error: t.Optional(
    t.String({ description: "Why the provider didn't revoke the token; absent if it did or doesn't support it." }),
  ),
});
export type ExternalAuthUnlinked = Static<typeof ExternalAuthUnlinked>;

/** An account that a template version asks its users to link. */
export const VersionExternalAuth = namedObject("VersionExternalAuth", {
  id: t.String({ description: "The ID of the provider." }),
  type: t.String({ description: "The provider's type; empty if this server has no such provider." }),
  display_name: t.String({
    description: "The display name of the provider; its ID if this server has no such provider.",
  }),
  display_icon: displayIcon,
  authenticate_url: t.String({ description: "The URL of the page where the user can link an account." }),
  authenticated: t.Boolean({ description: "Whether the caller has linked an account, and the link works." }),
  optional: t.Boolean({ description: "Whether workspaces are usable without the account." }),
});
export type VersionExternalAuth = Static<typeof VersionExternalAuth>;
