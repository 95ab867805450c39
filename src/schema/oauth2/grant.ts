// Wire shapes of an application's access request, and of granted access.
import { type Static, Type as t } from "@sinclair/typebox";
import { iconUrl, time, uuid } from "../fields.ts";
import { named, namedObject } from "../shape-names.ts";
import { strictObject } from "../strict.ts";
import { OAuth2App } from "./app.ts";

const parameter = (maxLength: number, description: string) => t.Optional(t.String({ maxLength, description }));

/** The parameters of an authorization request (RFC 6749 4.1.1, RFC 7636, RFC 8707). Most errors in them are returned by a redirect. */
const parameters = {
  client_id: t.String({ maxLength: 64, description: "The client ID of the application." }),
  redirect_uri: t.String({
    maxLength: 1024,
    description: "The redirect URL. Must be one of the application's `redirect_uris`.",
  }),
  response_type: parameter(64, "Must be `code`."),
  response_mode: parameter(64, "Must be `query` or absent."),
  scope: parameter(
    4096,
    "The requested scopes, separated by spaces; default: the scopes that the application registered with.",
  ),
  state: parameter(4096, "Returned unchanged with the response."),
  code_challenge: parameter(256, "The SHA-256 hash of the code verifier, in base64url."),
  code_challenge_method: parameter(16, "Must be `S256`."),
  resource: parameter(1024, "Must be a URL of this server, or absent."),
} as const;

export const AuthorizationParameters = t.Object(parameters);
export type AuthorizationParameters = Static<typeof AuthorizationParameters>;

export const AuthorizationAnswer = named(
  "OAuth2AuthorizationAnswer",
  strictObject({ ...parameters, approve: t.Boolean({ description: "Whether the user approves the request." }) }),
);

export const AuthorizationRequest = namedObject("OAuth2AuthorizationRequest", {
  app: t.Object({
    id: uuid(),
    name: t.String(),
    icon: iconUrl,
    self_registered: OAuth2App.properties.self_registered,
  }),
  scopes: t.Array(t.String(), { description: "The requested scopes; `all` means full access." }),
  sends_to: t.String({ description: "Display text for the redirect target: a host, or the scheme of a program." }),
  error_redirect: t.Optional(
    t.String({
      description: "Only set if the request is invalid: the URL to redirect the browser to, with the reason.",
    }),
  ),
});
export type AuthorizationRequest = Static<typeof AuthorizationRequest>;

export const AuthorizationRedirect = namedObject("OAuth2AuthorizationRedirect", {
  redirect_to: t.String({ description: "The URL to redirect the browser to." }),
});

export const OAuth2Grant = namedObject("OAuth2Grant", {
  id: t.String({
    description: "The ID of the grant: the first ten characters of its access token, before the hyphen.",
  }),
  app: t.Object({
    id: uuid(),
    name: t.String(),
    icon: iconUrl,
    self_registered: t.Boolean({ description: "Whether the application registered itself." }),
  }),
  scopes: t.Array(t.String(), { description: "The granted scopes; `all` means full access." }),
  created_at: time("When access was granted."),
  last_used: time("When the grant was last used; updated at most once an hour."),
  expires_at: time("When the grant expires if it isn't used."),
});
export type OAuth2Grant = Static<typeof OAuth2Grant>;
