// Wire shapes of OAuth 2 applications and their secrets. A secret is returned only once.
import { type Static, Type as t } from "@sinclair/typebox";
import { iconUrl, time, uuid } from "../fields.ts";
import { oneOf } from "../one-of.ts";
import { named, namedObject } from "../shape-names.ts";
import { strictObject } from "../strict.ts";
import { iconText, trimmedText } from "../text.ts";

/** How an application authenticates at the token endpoint; `none`: with PKCE alone. */
export const AUTH_METHODS = ["client_secret_basic", "client_secret_post", "none"] as const;
export type AuthMethod = (typeof AUTH_METHODS)[number];

/** Maximum redirect URIs, and scopes, of an application. */
export const MAX_REDIRECTS = 10;
export const MAX_SCOPES = 64;

export const OAuth2App = namedObject("OAuth2ProviderApp", {
  id: uuid("The application's ID, which is its `client_id`."),
  name: t.String(),
  icon: iconUrl,
  callback_url: t.String({ description: "The first URL of `redirect_uris`." }),
  redirect_uris: t.Array(t.String(), { description: "The allowed redirect URLs." }),
  scopes: t.Array(t.String(), {
    description: "The maximum scopes that the application can request. If empty, all scopes.",
  }),
  token_endpoint_auth_method: oneOf(
    AUTH_METHODS,
    "How the application authenticates at the token endpoint. `none`: with PKCE only.",
  ),
  self_registered: t.Boolean({
    description: "Whether the application registered itself. If so, its name is unverified.",
  }),
  created_at: time(),
  updated_at: time("When the application was last changed or last granted access."),
  endpoints: t.Object(
    {
      authorization: t.String({ description: "The URL at which users grant access." }),
      token: t.String({ description: "The URL at which the application gets tokens." }),
    },
    { description: "The authorization and token endpoints for the application." },
  ),
});
export type OAuth2App = Static<typeof OAuth2App>;

const name = trimmedText({
  minLength: 1,
  maxLength: 64,
  description: "The name of the application, which users see when they grant access.",
});
const address = t.String({
  maxLength: 1024,
  description: "A redirect URL: https, http on the local machine (`http://127.0.0.1`, any port), or a custom scheme.",
});
const redirect_uris = t.Array(address, { maxItems: MAX_REDIRECTS, description: "Additional redirect URLs." });
const scopes = t.Array(t.String({ maxLength: 64 }), {
  maxItems: MAX_SCOPES,
  description:
    "The maximum scopes that the application can request, by the names of `GET /auth/scopes`. If empty, all scopes.",
});
const icon = iconText({ maxLength: 8_192 });

export const CreateOAuth2App = named(
  "CreateOAuth2ProviderAppRequest",
  strictObject({
    name,
    callback_url: address,
    redirect_uris: t.Optional(redirect_uris),
    icon: t.Optional(icon),
    scopes: t.Optional(scopes),
    token_endpoint_auth_method: t.Optional(
      oneOf(AUTH_METHODS, "How the application authenticates at the token endpoint; default `client_secret_basic`."),
    ),
  }),
);
export type CreateOAuth2App = Static<typeof CreateOAuth2App>;

export const UpdateOAuth2App = named(
  "UpdateOAuth2ProviderAppRequest",
  strictObject({
    name: t.Optional(name),
    callback_url: t.Optional(address),
    redirect_uris: t.Optional(redirect_uris),
    icon: t.Optional(icon),
    scopes: t.Optional(scopes),
  }),
);
export type UpdateOAuth2App = Static<typeof UpdateOAuth2App>;

export const OAuth2Secret = namedObject("OAuth2ProviderAppSecret", {
  id: uuid(),
  client_secret_truncated: t.String({ description: "The last characters of the secret." }),
  created_at: time(),
  last_used_at: t.Union([t.String({ format: "date-time" }), t.Null()], {
    description: "When the secret was last used, updated at most once an hour; null if never.",
  }),
});
export type OAuth2Secret = Static<typeof OAuth2Secret>;

export const NewOAuth2Secret = namedObject("NewOAuth2ProviderAppSecret", {
  id: uuid(),
  client_secret_full: t.String({ description: "The client secret. It is returned only once." }),
});
