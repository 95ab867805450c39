// Wire shapes of API keys: tokens and sessions (facts/platform 8.2). Only the response that creates one contains the secret.
import { type Static, Type as t } from "@sinclair/typebox";
import { oneOf } from "../one-of.ts";
import { named, namedObject } from "../shape-names.ts";
import { strictObject } from "../strict.ts";

/** The format of token names, which appear in paths. */
const TokenName = t.String({
  maxLength: 64,
  pattern: "^([a-zA-Z0-9][a-zA-Z0-9_.-]*)?$",
  description:
    "The name of the token: up to 64 letters, digits and `_ . -`. Unique among the user's tokens. If empty or absent, one is generated.",
});

export const ApiKey = namedObject("ApiKey", {
  id: t.String({ description: "The ID of the key: its first ten characters, before the hyphen." }),
  user_id: t.String({ format: "uuid" }),
  username: t.String({ description: "The username of the key's owner." }),
  token_name: t.String({ description: "The name of the token; empty for sign-ins." }),
  login_type: t.String({
    description:
      "How the key was created: `token`; `password` or `oidc` for a sign-in; or `oauth2_provider_app` for a grant to an application.",
  }),
  created_by: t.Optional(
    t.String({ format: "uuid", description: "The owner of the deployment who created the key for its user." }),
  ),
  scope: t.String({ description: "The scope of the key, or `limited` if it has several." }),
  scopes: t.Array(t.String(), { description: "The scopes of the key; `all` means full access." }),
  allowed_addresses: t.Array(t.String(), {
    description: "The networks from which the key is valid, in CIDR notation. If empty, all.",
  }),
  lifetime_seconds: t.Integer({
    description: "How long the key is valid from its creation, or for sign-ins from their last use, in seconds.",
  }),
  created_at: t.String({ format: "date-time" }),
  updated_at: t.String({ format: "date-time" }),
  last_used: t.String({
    format: "date-time",
    description: "When the key was last used; updated at most once an hour.",
  }),
  expires_at: t.String({
    format: "date-time",
    description: "When the key expires. Use postpones it for sign-ins, but not for tokens.",
  }),
});
export type ApiKey = Static<typeof ApiKey>;

const Scopes = t.Array(t.String({ maxLength: 64 }), {
  maxItems: 128,
  description: "The scopes of the token, by the names of `GET /auth/scopes`. If absent or empty, `all`.",
});
const AllowedAddresses = t.Array(t.String({ maxLength: 64 }), {
  maxItems: 32,
  description: "The IP addresses or networks from which the token is valid, in CIDR notation. If absent or empty, all.",
});

// Both bodies are strict: with a misspelled `scopes` or `allowed_addresses`, the key would have full access from everywhere.
export const CreateTokenRequest = named(
  "CreateTokenRequest",
  strictObject({
    lifetime: t.Optional(
      t.Union([t.Integer(), t.String({ maxLength: 64 })], {
        description:
          "The lifetime in nanoseconds, or a string such as `168h` or `30d`. 0 or absent applies the default, seven days.",
      }),
    ),
    scope: t.Optional(t.String({ maxLength: 64, description: "A single scope. Added to `scopes` if both are set." })),
    scopes: t.Optional(Scopes),
    allowed_addresses: t.Optional(AllowedAddresses),
    token_name: t.Optional(TokenName),
    allow_list: t.Optional(
      t.Array(
        strictObject({
          type: t.String({ maxLength: 64, description: "Must be `*`." }),
          id: t.String({ maxLength: 64, description: "Must be `*`." }),
        }),
        {
          maxItems: 16,
          description: "Only `{type: *, id: *}` is accepted, because tokens can't be limited to single resources.",
        },
      ),
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
  id: t.String({ description: "The ID of the session: the first ten characters of its key, before the hyphen." }),
  current: t.Boolean({ description: "Whether this request was made with the session's key." }),
  device: t.Object({
    client: t.String({ description: "The name and version of the browser or program; empty if unknown." }),
    os: t.String({ description: "The operating system; empty if unknown." }),
    kind: oneOf(["browser", "program", "unknown"], "The kind of client, derived from its user agent."),
  }),
  user_agent: t.String({ description: "The user agent that the client sent; empty if unknown." }),
  ip_address: t.String({ description: "The last known IP address of the client; empty if unknown." }),
  created_at: t.String({ format: "date-time", description: "When the user signed in." }),
  last_used: t.String({
    format: "date-time",
    description: "When the session was last used. Updated at most once an hour, or earlier if the address changes.",
  }),
  expires_at: t.String({ format: "date-time", description: "When the session expires if it isn't used." }),
});
export type Session = Static<typeof Session>;

export const NewKey = namedObject("NewKey", {
  key: t.String({ description: "The key. It is returned only once." }),
});

export const TokenConfig = namedObject("TokenConfig", {
  max_token_lifetime: t.Integer({ description: "The maximum lifetime of this user's tokens, in nanoseconds." }),
});
