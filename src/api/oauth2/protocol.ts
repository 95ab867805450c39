// Standard OAuth 2 endpoints: metadata (RFC 8414, RFC 9728), registration (RFC 7591), tokens (RFC 6749) and revocation (RFC 7009). None
// uses the user's session. The routes are not registered when the setting oauth2_provider is off.
import type { AnyElysia } from "elysia";
import { COMMON_HEADERS } from "#base/network/common-headers.ts";
import { requireOwnResource } from "#domain/oauth2/authorize.ts";
import { findClient } from "#domain/oauth2/clients.ts";
import { revokeToken } from "#domain/oauth2/grants.ts";
import { OAuth2Problem } from "#domain/oauth2/problem.ts";
import { type Metadata, registerApp } from "#domain/oauth2/register.ts";
import { redeemCode, refresh, type Tokens } from "#domain/oauth2/tokens.ts";
import { Throttle, toNetwork } from "#domain/users/throttle.ts";
import { AUTH_METHODS } from "#schema/oauth2/app.ts";
import { SCOPES } from "#schema/users/scopes.ts";
import type { ApiContext } from "../context.ts";
import { operation } from "../http/operation.ts";
import { routes } from "../http/routes.ts";
import { type Form, getField, MAX_FORM_BYTES, parseProof, readForm } from "./form.ts";

/** Limits per network and minute: registrations, and other calls. */
const MAX_REGISTRATIONS = 10;
const MAX_CALLS = 300;

const hidden = { detail: { ...operation({ reads: "stream", limit: MAX_FORM_BYTES }), hide: true } };
const hiddenJson = { detail: { ...operation({ reads: "public", limit: MAX_FORM_BYTES }), hide: true } };

/** Returns JSON that must not be cached, because it contains tokens. */
const respond = (body: object, status = 200, extraHeaders: Record<string, string> = {}): Response =>
  Response.json(body, { status, headers: { ...COMMON_HEADERS, pragma: "no-cache", ...extraHeaders } });

/** Returns OAuth errors in the standard's format; other errors are handled as usual. */
const toErrorResponse = (error: unknown): Response => {
  if (!(error instanceof OAuth2Problem)) throw error;
  const body = { error: error.code, error_description: error.message };
  if (error.code === "invalid_client") return respond(body, 401, { "www-authenticate": 'Basic realm="oauth2"' });
  return respond(body, error.code === "temporarily_unavailable" ? 503 : 400);
};

export const oauth2Protocol = (ctx: ApiContext): AnyElysia => {
  const registrations = new Throttle(ctx.clock, MAX_REGISTRATIONS);
  const calls = new Throttle(ctx.clock, MAX_CALLS);
  const toUrl = (path: string): string => new URL(path, ctx.accessUrl).href;
  const countCall = (throttle: Throttle, request: Request): void =>
    throttle.count(toNetwork(ctx.addresses.of(request)));

  const getMetadata = () => ({
    issuer: ctx.accessUrl.origin,
    authorization_endpoint: toUrl("/oauth2/authorize"),
    token_endpoint: toUrl("/oauth2/token"),
    revocation_endpoint: toUrl("/oauth2/revoke"),
    ...(ctx.config.oauth2_registration ? { registration_endpoint: toUrl("/oauth2/register") } : {}),
    scopes_supported: SCOPES,
    response_types_supported: ["code"],
    response_modes_supported: ["query"],
    grant_types_supported: ["authorization_code", "refresh_token"],
    token_endpoint_auth_methods_supported: AUTH_METHODS,
    revocation_endpoint_auth_methods_supported: AUTH_METHODS,
    code_challenge_methods_supported: ["S256"],
    authorization_response_iss_parameter_supported: true,
  });

  const issueTokens = async (request: Request, form: Form): Promise<Tokens> => {
    const client = await findClient(ctx, parseProof(request, form));
    const type = getField(form, "grant_type");
    requireOwnResource(ctx, form.get("resource"));
    if (type === "authorization_code") {
      const [code, redirect_uri] = [getField(form, "code"), getField(form, "redirect_uri")];
      return redeemCode(ctx, client, { code, redirect_uri, code_verifier: getField(form, "code_verifier") });
    }
    if (type === "refresh_token") {
      return refresh(ctx, client, { refresh_token: getField(form, "refresh_token"), scope: form.get("scope") });
    }
    throw new OAuth2Problem("unsupported_grant_type", "grant_type must be authorization_code or refresh_token.");
  };

  const getResourceMetadata = () => ({
    resource: ctx.accessUrl.origin,
    authorization_servers: [ctx.accessUrl.origin],
    scopes_supported: SCOPES,
    bearer_methods_supported: ["header"],
  });

  const registrationRoutes = (): AnyElysia =>
    routes().post(
      "/oauth2/register",
      async ({ request, body }) => {
        countCall(registrations, request);
        try {
          const { app, secret } = await registerApp(ctx, body as Metadata | null);
          const registered = {
            client_id: app.id,
            client_id_issued_at: Math.floor(app.created_at / 1000),
            ...(secret === undefined ? {} : { client_secret: secret, client_secret_expires_at: 0 }),
            client_name: app.name,
            redirect_uris: app.redirect_uris,
            token_endpoint_auth_method: app.auth_method,
            grant_types: ["authorization_code", "refresh_token"],
            response_types: ["code"],
            ...(app.icon === "" ? {} : { logo_uri: app.icon }),
            ...(app.scopes.length === 0 ? {} : { scope: app.scopes.join(" ") }),
          };
          return respond(registered, 201);
        } catch (error) {
          return toErrorResponse(error);
        }
      },
      hiddenJson,
    );

  if (!ctx.config.oauth2_provider) return routes();
  return routes()
    .use(ctx.config.oauth2_registration ? registrationRoutes() : routes())
    .get("/.well-known/oauth-authorization-server", () => respond(getMetadata()), { detail: { hide: true } })
    .get("/.well-known/oauth-protected-resource", () => respond(getResourceMetadata()), { detail: { hide: true } })
    .post(
      "/oauth2/token",
      async ({ request }) => {
        countCall(calls, request);
        try {
          return respond(await issueTokens(request, await readForm(request)));
        } catch (error) {
          return toErrorResponse(error);
        }
      },
      hidden,
    )
    .post(
      "/oauth2/revoke",
      async ({ request }) => {
        countCall(calls, request);
        try {
          const form = await readForm(request);
          const client = await findClient(ctx, parseProof(request, form));
          await revokeToken(ctx, client, getField(form, "token"));
          return respond({});
        } catch (error) {
          return toErrorResponse(error);
        }
      },
      hidden,
    );
};
