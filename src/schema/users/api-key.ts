// Wire shapes of API keys: tokens and sessions (facts/platform 8.2). Only the response that creates one contains the secret.
import { type Static, Type as t } from "@sinclair/typebox";
import { named, namedObject } from "../shape-names.ts";
import { strictObject } from "../strict.ts";

/** The format of token names, which appear in paths. */
const TokenName = t.String({
  maxLength: 64,
  pattern: "^([a-zA-Z0-9][a-zA-Z0-9_.-]*)?$",
  description: "Up to 64 letters, digits, `_ . -`, unique among the user's tokens. Empty or absent: one is made up.",
});

export const ApiKey = namedObject("ApiKey", {
  id: t.String({ description: "The ten characters before the hyphen of the key." }),
  user_id: t.String({ format: "uuid" }),
  username: t.String({ description: "Owner of the key." }),
  token_name: t.String({ description: "Empty for sign-ins." }),
  login_type: t.String({
    description: "token; password or oidc for a sign-in; oauth2_provider_app for a grant to an application.",
  }),
  scope: t.String({ description: "The scope, or `limited` where there are several." }),
  scopes: t.Array(t.String(), { description: "The scopes of the key; `all` is everything." }),
  allowed_addresses: t.Array(t.String(), {
    description: "Networks in CIDR notation from which it is valid; empty: all.",
  }),
  lifetime_seconds: t.Integer(),
  created_at: t.String({ format: "date-time" }),
  updated_at: t.String({ format: "date-time" }),
  last_used: t.String({ format: "date-time", description: "Updated at most once an hour." }),
  expires_at: t.String({ format: "date-time" }),
});
export type ApiKey = Static<typeof ApiKey>;

const Scopes = t.Array(t.String({ maxLength: 64 }), {
  maxItems: 128,
  description: "What it may be used for, by the names of `GET /auth/scopes`. Absent or empty: `all`.",
});
const AllowedAddresses = t.Array(t.String({ maxLength: 64 }), {
  maxItems: 32,
  description: "IP addresses or networks in CIDR notation from which it is valid. Absent or empty: all.",
});

// Strict, both: with a misspelled `scopes` or `allowed_addresses`, the key would have full access from everywhere.
export const CreateTokenRequest = named(
  "CreateTokenRequest",
  strictObject({
    lifetime: t.Optional(
      t.Union([t.Integer(), t.String({ maxLength: 64 })], {
        description: "Nanoseconds, or a text such as `168h` or `30d`. 0 or absent: the default, seven days.",
      }),
    ),
    scope: t.Optional(t.String({ maxLength: 64, description: "One scope; together with `scopes`, one more." })),
    scopes: t.Optional(Scopes),
    allowed_addresses: t.Optional(AllowedAddresses),
    token_name: t.Optional(TokenName),
    allow_list: t.Optional(
      t.Array(strictObject({ type: t.String({ maxLength: 64 }), id: t.String({ maxLength: 64 }) }), {
        maxItems: 16,
        description: "Only {type: *, id: *} is accepted: tokens are not bound to single resources.",
      }),
    ),
  }),
);

export const UpdateTokenRequest = named(
  "UpdateTokenRequest",
  strictObject({
    scopes: t.Optional(Scopes),
    allowed_addresses: t.Optional(AllowedAddresses),
  }),
);

/** A valid session of a user. */
export const Session = namedObject("Session", {
  id: t.String({ description: "The ten characters before the hyphen of its key." }),
  current: t.Boolean({ description: "The key of this request." }),
  device: t.Object({
    client: t.String({ description: "The browser or program with its version; empty when not known." }),
    os: t.String({ description: "Empty when not known." }),
    kind: t.Union([t.Literal("browser"), t.Literal("program"), t.Literal("unknown")]),
  }),
  user_agent: t.String({ description: "As sent by the client; empty if unknown." }),
  ip_address: t.String({ description: "Where it was last used, as far as that was noted; empty when not known." }),
  created_at: t.String({ format: "date-time" }),
  last_used: t.String({
    format: "date-time",
    description: "Updated at most once an hour, or sooner from a new address.",
  }),
  expires_at: t.String({ format: "date-time", description: "When it expires unless it is used." }),
});
export type Session = Static<typeof Session>;

export const NewKey = namedObject("NewKey", {
  key: t.String({ description: "The whole key. It is shown only this once." }),
});

export const TokenConfig = namedObject("TokenConfig", {
  max_token_lifetime: t.Integer({ description: "Maximum lifetime of this user's tokens, in nanoseconds." }),
});
