// Wire shapes of an application's access request, and of granted access.
import { type Static, Type as t } from "@sinclair/typebox";
import { time, uuid } from "../fields.ts";
import { named, namedObject } from "../shape-names.ts";
import { strictObject } from "../strict.ts";

const parameter = (maxLength: number, description: string) => t.Optional(t.String({ maxLength, description }));

/** The parameters of an authorization request (RFC 6749 4.1.1, RFC 7636, RFC 8707). Errors in them are returned by redirect. */
const parameters = {
  client_id: t.String({ maxLength: 64, description: "The application." }),
  redirect_uri: t.String({ maxLength: 1024, description: "One of its addresses." }),
  response_type: parameter(64, "`code`."),
  response_mode: parameter(64, "`query`, or nothing."),
  scope: parameter(
    4096,
    "Names of scopes, separated by spaces. Default: the scopes that the application registered with.",
  ),
  state: parameter(4096, "Returned unchanged with the response."),
  code_challenge: parameter(256, "SHA-256 of the verifier, base64url."),
  code_challenge_method: parameter(16, "`S256`."),
  resource: parameter(1024, "An address of this server, or nothing."),
} as const;

export const AuthorizationParameters = t.Object(parameters);
export type AuthorizationParameters = Static<typeof AuthorizationParameters>;

export const AuthorizationAnswer = named(
  "OAuth2AuthorizationAnswer",
  strictObject({ ...parameters, approve: t.Boolean({ description: "Whether the user approves." }) }),
);

export const AuthorizationRequest = namedObject("OAuth2AuthorizationRequest", {
  app: t.Object({
    id: uuid(),
    name: t.String(),
    icon: t.String(),
    self_registered: t.Boolean({ description: "Its name is unverified." }),
  }),
  scopes: t.Array(t.String(), { description: "The scopes it requests; `all` is everything." }),
  sends_to: t.String({ description: "Display text of the redirect target: a host, or the scheme of a program." }),
  error_redirect: t.Optional(
    t.String({ description: "Set if the request is invalid: the browser is redirected there with the reason." }),
  ),
});
export type AuthorizationRequest = Static<typeof AuthorizationRequest>;

export const AuthorizationRedirect = namedObject("OAuth2AuthorizationRedirect", {
  redirect_to: t.String({ description: "The URL to which the browser is redirected." }),
});

export const OAuth2Grant = namedObject("OAuth2Grant", {
  id: t.String({ description: "The ten characters before the hyphen of its access token." }),
  app: t.Object({ id: uuid(), name: t.String(), icon: t.String(), self_registered: t.Boolean() }),
  scopes: t.Array(t.String()),
  created_at: time(),
  last_used: time("Updated at most once an hour."),
  expires_at: time("Unless it is used before then."),
});
export type OAuth2Grant = Static<typeof OAuth2Grant>;
