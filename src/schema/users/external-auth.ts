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

export const ExternalAuthProvider = namedObject("ExternalAuthProvider", {
  id: t.String(),
  type: t.String(),
  display_name: t.String(),
  display_icon: t.String(),
  device: t.Boolean({ description: "Whether users link an account by entering a code at the provider." }),
  allow_refresh: t.Boolean(),
  allow_validate: t.Boolean(),
  supports_revocation: t.Boolean(),
});
export type ExternalAuthProvider = Static<typeof ExternalAuthProvider>;

export const ExternalAuthLink = namedObject("ExternalAuthLink", {
  provider_id: t.String(),
  created_at: t.String({ format: "date-time" }),
  updated_at: t.String({ format: "date-time" }),
  expires: t.Optional(t.String({ format: "date-time", description: "When the token expires; absent if it doesn't." })),
  has_refresh_token: t.Boolean(),
  authenticated: t.Boolean({ description: "Whether the link works. If false, the user must link the account again." }),
  validate_error: t.String({ description: "Why the link no longer works; empty if it works." }),
});
export type ExternalAuthLink = Static<typeof ExternalAuthLink>;

export const ExternalAuthList = namedObject("ExternalAuthList", {
  providers: t.Array(ExternalAuthProvider),
  links: t.Array(ExternalAuthLink),
});
export type ExternalAuthList = Static<typeof ExternalAuthList>;

export const ExternalAuth = namedObject("ExternalAuth", {
  authenticated: t.Boolean(),
  device: t.Boolean(),
  display_name: t.String(),
  supports_revocation: t.Boolean(),
  user: t.Union([t.Object({ login: t.String(), name: t.String(), profile_url: t.String() }), t.Null()], {
    description: "The user's account at the provider, if the provider reports it.",
  }),
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
  device_code: t.String({ minLength: 1, maxLength: 32_768 }),
});

export const ExternalAuthUnlinked = namedObject("ExternalAuthUnlinked", {
  token_revoked: t.Boolean({ description: "Whether the provider has also revoked the token." }),
  token_revocation_error: t.Optional(t.String()),
});
export type ExternalAuthUnlinked = Static<typeof ExternalAuthUnlinked>;

/** An account that a template version asks its users to link. */
export const VersionExternalAuth = namedObject("VersionExternalAuth", {
  id: t.String(),
  type: t.String({ description: "The provider's type; empty if this server has no such provider." }),
  display_name: t.String(),
  display_icon: t.String(),
  authenticate_url: t.String({ description: "The URL of the page where the user can link an account." }),
  authenticated: t.Boolean(),
  optional: t.Boolean(),
});
export type VersionExternalAuth = Static<typeof VersionExternalAuth>;
