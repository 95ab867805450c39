// Signing in at an OpenID Connect provider: the browser is sent there with a state that travels in a cookie, and comes back with a code
// (rules OI-2 to OI-8). A person gets pages, a program the same words as JSON.
import { redirect, t } from "elysia";
import { type Encryption, UnsealError } from "#base/encryption.ts";
import { AppError, notFound } from "#base/errors.ts";
import { log } from "#base/log.ts";
import { CommitError } from "#db/engine/store.ts";
import { admitPerson } from "#domain/oidc/admit.ts";
import { toIdentity } from "#domain/oidc/identity.ts";
import { OidcProviders, providerPath } from "#domain/oidc/providers.ts";
import { LoginRefused } from "#schema/users/second-factor.ts";
import { type Checks, type OidcClient, OidcError } from "#src/authentication/oidc.ts";
import type { ApiContext } from "../context.ts";
import { askForFactor } from "../factors/sign-in.ts";
import { cookie } from "../http/identify.ts";
import { plainPage, wantsPage } from "../http/plain-page.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { openSession } from "../users/new-session.ts";

const tags = ["Users"];
const STATE_COOKIE = "service_oidc_state";
/** As long as a person may take to sign in at the provider. */
const LIFE_S = 600;

type State = { readonly checks: Checks; readonly back: string; readonly until: number };

const params = t.Object({ provider: t.String({ maxLength: 64, description: "Id of the provider." }) });
const query = t.Object({
  redirect: t.Optional(t.String({ maxLength: 2048, description: "Where to go afterwards: a path of this server." })),
});

/** A path of ours, with one slash before it, since two name another host; the home page for anything else (rule PG-3). */
const wayBack = (asked: string | undefined, origin: string): string => {
  const url = asked?.startsWith("/") && URL.canParse(asked, origin) ? new URL(asked, origin) : undefined;
  return url?.origin === origin ? `/${url.pathname.replace(/^\/+/, "")}${url.search}${url.hash}` : "/";
};

const contextOf = (id: string): string => `oidc_state:${id}`;

const stateIn = (encryption: Encryption, id: string, request: Request): State | undefined => {
  const sealed = cookie(request.headers.get("cookie") ?? "", STATE_COOKIE);
  try {
    return sealed === undefined ? undefined : (JSON.parse(encryption.open(sealed, contextOf(id))) as State);
  } catch (error) {
    if (error instanceof UnsealError) return undefined;
    throw error;
  }
};

/** A refusal as an answer of ours. */
const asAnswer = (error: unknown): AppError => {
  if (error instanceof AppError) return error;
  if (error instanceof CommitError && error.reason === "constraint") {
    return new AppError("conflict", "Somebody has signed up with these names at the same moment. Sign in again.");
  }
  if (error instanceof CommitError && error.reason === "stale") {
    return new AppError("conflict", "Your account was changed at the same moment. Sign in again.");
  }
  if (!(error instanceof OidcError)) throw error;
  if (error.kind !== "denied")
    log("http").warn("a sign-in at a provider failed: {error}", { error: error.cause ?? error });
  return new AppError(error.kind === "unavailable" ? "overloaded" : "unauthenticated", error.message);
};

export const oidc = (ctx: ApiContext) => {
  const providers = new OidcProviders({
    clock: ctx.clock,
    settings: ctx.config.oidc_providers,
    allowed: ctx.config.allowed_private_networks,
  });
  const isSecure = (): string => (ctx.accessUrl.protocol === "https:" ? "; Secure" : "");
  const stateCookie = (id: string, value: string): string =>
    `${STATE_COOKIE}=${value}; Path=${providerPath(id)}; HttpOnly; SameSite=Lax; Max-Age=${value === "" ? 0 : LIFE_S}${isSecure()}`;
  const redirectUri = (id: string): URL => new URL(`${providerPath(id)}/callback`, ctx.accessUrl);

  const begin = async (client: OidcClient, back: string | undefined): Promise<Response> => {
    const { id } = client.setting;
    const { url, checks } = await client.begin(redirectUri(id).href).catch((error) => Promise.reject(asAnswer(error)));
    const state: State = {
      checks,
      back: wayBack(back, ctx.accessUrl.origin),
      until: ctx.clock.now() + LIFE_S * 1000,
    };
    const sealed = ctx.encryption.seal(JSON.stringify(state), contextOf(id));
    return withCookies(redirect(url.href, 307), stateCookie(id, sealed));
  };

  const complete = async (client: OidcClient, request: Request): Promise<Response> => {
    const { setting } = client;
    const state = stateIn(ctx.encryption, setting.id, request);
    if (!state || state.until <= ctx.clock.now()) {
      throw new AppError("unauthenticated", "This sign-in was not begun here, or too long ago. Begin it again.");
    }
    const callback = redirectUri(setting.id);
    callback.search = new URL(request.url).search;
    const claims = await client.complete(callback, state.checks);
    const identity = toIdentity(client, claims);
    const { user, changes, methods } = await admitPerson(ctx, client, identity);
    if (methods.length > 0) {
      const asked = askForFactor(ctx, user, methods, { provider: setting.id, identity });
      if (!wantsPage(request)) return Response.json(asked, { status: 401 });
      const page = new URL("/login", ctx.accessUrl);
      page.searchParams.set("redirect", state.back);
      page.hash = `challenge=${encodeURIComponent(asked.second_factor?.challenge ?? "")}`;
      return redirect(page.pathname + page.search + page.hash, 307);
    }
    const proved = { password: user.login_type === "oidc", factor: false };
    const { cookie } = await openSession(ctx, user, request, proved, changes, "oidc");
    return withCookies(redirect(state.back, 307), cookie);
  };

  const response = { 307: t.Void({ description: "To the provider, or back to where the sign-in began." }) };
  const detail = { tags, security: [] };

  return routes({ prefix: "/oidc" })
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
        detail: {
          ...detail,
          operationId: "completeDefaultOidcSignIn",
          summary: "Sign in at the first OpenID Connect provider",
          description: "For clients that know one provider only: begins as the operation that names one.",
        },
      },
    )
    .get("/:provider/start", ({ params, query }) => begin(providers.at(params.provider), query.redirect), {
      params,
      query,
      response: { ...response, ...fails(400, 401, 404, 503) },
      detail: {
        ...detail,
        operationId: "startOidcSignIn",
        summary: "Sign in at an OpenID Connect provider",
        description: "Sends the browser there. Counts ten minutes, in this browser.",
      },
    })
    .get(
      "/:provider/callback",
      async ({ params, request }) => {
        const client = providers.at(params.provider);
        const answer = await complete(client, request).catch((thrown) => {
          const error = asAnswer(thrown);
          if (!wantsPage(request)) throw error;
          const text = [error.message, error.detail].filter(Boolean).join(" ");
          const headers = new Headers({ "cache-control": "no-store", "x-content-type-options": "nosniff" });
          return plainPage({ status: 403, title: "You are not signed in", text, home: "/login" }, headers);
        });
        return withCookies(answer, stateCookie(params.provider, ""));
      },
      {
        params,
        response: { ...response, 401: LoginRefused, ...fails(400, 403, 404, 409, 503) },
        detail: {
          ...detail,
          operationId: "completeOidcSignIn",
          summary: "End a sign-in at an OpenID Connect provider",
          description: `Where the provider sends the browser back to: \`${providerPath("{provider}")}/callback\` is the redirect URI to register there. Sets the cookie of the session.`,
        },
      },
    );
};

const withCookies = (response: Response, ...cookies: string[]): Response => {
  const headers = new Headers(response.headers);
  for (const one of cookies) headers.append("set-cookie", one);
  return new Response(response.body, { status: response.status, headers });
};
