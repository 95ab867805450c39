// Sign-in with an OpenID Connect provider: the browser is redirected there with a state kept in a cookie, and returns with a code (rules
// OI-2 to OI-8). People get pages, programs the same text as JSON.
import { redirect, t } from "elysia";
import { notFound } from "#base/errors.ts";
import { admitPerson } from "#domain/oidc/admit.ts";
import { removeRemarks, toIdentity } from "#domain/oidc/identity.ts";
import { providerPath, redirectUri } from "#domain/oidc/providers.ts";
import { storeOidcSession } from "#domain/oidc/session.ts";
import { LoginRefused } from "#schema/users/second-factor.ts";
import type { OidcClient } from "#src/authentication/oidc.ts";
import type { ApiContext } from "../context.ts";
import { requestFactor } from "../factors/sign-in.ts";
import { operation } from "../http/operation.ts";
import { acceptsPage, renderPlainPage } from "../http/plain-page.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { openSession } from "../users/new-session.ts";
import { toSignInError } from "./refusals.ts";
import { formatStateCookie, requireStartedSignIn, sealState } from "./sign-in-state.ts";
import { oidcTrial } from "./trial.ts";

const tags = ["Users"];
const params = t.Object({ provider: t.String({ maxLength: 64, description: "The ID of the provider." }) });
const query = t.Object({
  redirect: t.Optional(
    t.String({ maxLength: 2048, description: "The path on this server to redirect to after the sign-in." }),
  ),
});

/**
 * Returns a path on this server, with exactly one leading slash because two would name another host; the home page for anything else (rule
 * PG-3).
 */
const toReturnPath = (requested: string | undefined, origin: string): string => {
  const url = requested?.startsWith("/") && URL.canParse(requested, origin) ? new URL(requested, origin) : undefined;
  return url?.origin === origin ? `/${url.pathname.replace(/^\/+/, "")}${url.search}${url.hash}` : "/";
};

export const oidc = (ctx: ApiContext) => {
  const providers = ctx.oidc;

  const begin = async (client: OidcClient, requestedPath: string | undefined): Promise<Response> => {
    const { id } = client.setting;
    const { url, checks } = await client
      .begin(redirectUri(id, ctx.accessUrl).href)
      .catch((error) => Promise.reject(toSignInError(error)));
    const sealed = sealState(ctx, id, { checks, back: toReturnPath(requestedPath, ctx.accessUrl.origin) });
    return withCookies(redirect(url.href, 307), formatStateCookie(ctx, id, sealed));
  };

  const complete = async (client: OidcClient, request: Request): Promise<Response> => {
    const { setting } = client;
    const state = requireStartedSignIn(ctx, setting.id, request);
    const { search } = new URL(request.url);
    // The page completes the trial and needs the cookie.
    if (state.trial_of !== undefined) return redirect(`${state.back}#${search}`, 307);
    const callback = redirectUri(setting.id, ctx.accessUrl);
    callback.search = search;
    const completed = await client.complete(callback, state.checks);
    const identity = toIdentity(client, completed.claims);
    const { user, changes, methods, revokesKeys } = await admitPerson(ctx, client, identity, state.invitation);
    const clearedCookie = formatStateCookie(ctx, setting.id, "");
    if (methods.length > 0) {
      const challenge = requestFactor(ctx, user, methods, { provider: setting.id, identity: removeRemarks(identity) });
      if (!acceptsPage(request)) return withCookies(Response.json(challenge, { status: 401 }), clearedCookie);
      const page = new URL("/login", ctx.accessUrl);
      page.searchParams.set("redirect", state.back);
      page.hash = `challenge=${encodeURIComponent(challenge.second_factor?.challenge ?? "")}`;
      return withCookies(redirect(page.pathname + page.search + page.hash, 307), clearedCookie);
    }
    const provenFactors = { password: user.login_type === "oidc", factor: false };
    const { cookie } = await openSession(ctx, user, request, provenFactors, changes, {
      login_type: "oidc",
      revokesKeys,
      keeps: (key_id) => storeOidcSession(ctx, client, key_id, completed),
    });
    return withCookies(redirect(state.back, 307), cookie, clearedCookie);
  };

  const response = { 307: t.Void({ description: "Redirects to the provider, or back to where the sign-in began." }) };
  const detail = { tags, security: [] };

  return routes({ prefix: "/oidc" })
    .use(oidcTrial(ctx))
    .get(
      "/callback",
      ({ query }) => {
        const [first] = providers.all;
        if (!first) throw notFound();
        return begin(first, query.redirect);
      },
      {
        query,
        response: { ...response, ...fails(400, 401, 404, 503) },
        detail: operation({
          ...detail,
          operationId: "completeDefaultOidcSignIn",
          access: "anyone",
          summary: "Sign in with the default OpenID Connect provider",
          description: "For clients that support only one provider. Uses the first one.",
        }),
      },
    )
    .get("/:provider/start", ({ params, query }) => begin(providers.get(params.provider), query.redirect), {
      params,
      query,
      response: { ...response, ...fails(400, 401, 404, 503) },
      detail: operation({
        ...detail,
        operationId: "startOidcSignIn",
        access: "anyone",
        summary: "Start signing in with an OpenID Connect provider",
        description: "Redirects the browser to the provider. The sign-in is valid for ten minutes, in this browser.",
      }),
    })
    .get(
      "/:provider/callback",
      ({ params, request }) => {
        const client = providers.get(params.provider);
        return complete(client, request).catch((thrown) => {
          const error = toSignInError(thrown);
          if (!acceptsPage(request)) throw error;
          const text = [error.message, error.detail].filter(Boolean).join(" ");
          const headers = new Headers({ "cache-control": "no-store", "x-content-type-options": "nosniff" });
          const page = renderPlainPage({ status: 403, title: "You are not signed in", text, home: "/login" }, headers);
          return withCookies(page, formatStateCookie(ctx, params.provider, ""));
        });
      },
      {
        params,
        response: { ...response, 401: LoginRefused, ...fails(400, 403, 404, 409, 503) },
        detail: operation({
          ...detail,
          operationId: "completeOidcSignIn",
          access: "anyone",
          summary: "Complete signing in with an OpenID Connect provider",
          description: `The redirect URI to register with the provider is \`${providerPath("{provider}")}/callback\`. Sets the session cookie.`,
        }),
      },
    );
};

const withCookies = (response: Response, ...cookies: string[]): Response => {
  const headers = new Headers(response.headers);
  for (const cookie of cookies) headers.append("set-cookie", cookie);
  return new Response(response.body, { status: response.status, headers });
};
