// Wire shapes of external auth: linked accounts at git hosts and other services (specification "Agent external auth response",
// facts/platform 3.6).
import { type Static, Type as t } from "@sinclair/typebox";
import { namedObject } from "../shape-names.ts";

/** The response to an agent. If not linked yet, only `url` is set. */
export const AgentExternalAuth = namedObject("AgentExternalAuth", {
  access_token: t.String({ description: "Empty while the owner has not linked an account." }),
  username: t.String({ description: "For git over https." }),
  password: t.String({ description: "For git over https; may be empty." }),
  type: t.String({ description: "The provider's type, such as github." }),
  url: t.String({ description: "Where the owner links an account; empty once that is done." }),
  expires_at: t.Optional(t.String({ format: "date-time", description: "Absent when the token does not expire." })),
  token_extra: t.Record(t.String(), t.Unknown(), { description: "Further data from the provider." }),
});
export type AgentExternalAuth = Static<typeof AgentExternalAuth>;

export const ExternalAuthProvider = namedObject("ExternalAuthProvider", {
  id: t.String(),
  type: t.String(),
  display_name: t.String(),
  display_icon: t.String(),
  device: t.Boolean({ description: "True if users enter a code at the provider." }),
  allow_refresh: t.Boolean(),
  allow_validate: t.Boolean(),
  supports_revocation: t.Boolean(),
});
export type ExternalAuthProvider = Static<typeof ExternalAuthProvider>;

export const ExternalAuthLink = namedObject("ExternalAuthLink", {
  provider_id: t.String(),
  created_at: t.String({ format: "date-time" }),
  updated_at: t.String({ format: "date-time" }),
  expires: t.Optional(t.String({ format: "date-time", description: "Absent when the token does not expire." })),
  has_refresh_token: t.Boolean(),
  authenticated: t.Boolean({ description: "False: link the account again." }),
  validate_error: t.String({ description: "Why it no longer works; empty if it works." }),
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
    description: "The account at the provider, if the provider reports it.",
  }),
});
export type ExternalAuth = Static<typeof ExternalAuth>;

export const ExternalAuthStart = namedObject("ExternalAuthStart", {
  url: t.String({ description: "The URL to which the browser is redirected." }),
});

export const ExternalAuthCallback = namedObject("ExternalAuthCallback", {
  code: t.String({ minLength: 1, maxLength: 4096, description: "As reported by the provider." }),
  state: t.String({ minLength: 1, maxLength: 4096, description: "As sent in the request." }),
});

export const ExternalAuthDevice = namedObject("ExternalAuthDevice", {
  device_code: t.String({ description: "For the polls; only this user can use it." }),
  user_code: t.String({ description: "The code that the user enters at the provider." }),
  verification_uri: t.String({ description: "The URL at which the user enters it." }),
  expires_in: t.Integer({ description: "Seconds." }),
  interval: t.Integer({ description: "Seconds between two polls." }),
});
export type ExternalAuthDevice = Static<typeof ExternalAuthDevice>;

export const ExternalAuthPoll = namedObject("ExternalAuthPoll", {
  device_code: t.String({ minLength: 1, maxLength: 32_768 }),
});

export const ExternalAuthUnlinked = namedObject("ExternalAuthUnlinked", {
  token_revoked: t.Boolean({ description: "True if the provider has also revoked the token." }),
  token_revocation_error: t.Optional(t.String()),
});
export type ExternalAuthUnlinked = Static<typeof ExternalAuthUnlinked>;

/** An account that a template version asks its users to link. */
export const VersionExternalAuth = namedObject("VersionExternalAuth", {
  id: t.String(),
  type: t.String({ description: "Empty when this server has no such provider." }),
  display_name: t.String(),
  display_icon: t.String(),
  authenticate_url: t.String({ description: "The page where the account is linked." }),
  authenticated: t.Boolean(),
  optional: t.Boolean(),
});
export type VersionExternalAuth = Static<typeof VersionExternalAuth>;
