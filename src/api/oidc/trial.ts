// Tests a provider: an owner signs in there without creating a session here, and the result shows the provider's claims and what they would
// grant (rule OI-12).
import { t } from "elysia";
import { AppError, forbidden } from "#base/errors.ts";
import { canChangeDeployment, canReadDeployment } from "#domain/access.ts";
import { redirectUri } from "#domain/oidc/providers.ts";
import { presentOidcProvider, tryPerson } from "#domain/oidc/trial.ts";
import { OidcProviders, OidcTrial, OidcTrialRequest, OidcTrialStarted } from "#schema/users/oidc.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { toSignInError } from "./refusals.ts";
import { formatStateCookie, requireStartedSignIn, sealState } from "./sign-in-state.ts";

const tags = ["Users"];
const params = t.Object({ provider: t.String({ maxLength: 64, description: "The ID of the provider." }) });

/** The page that the browser returns to. Its data is in the fragment, so that it does not appear in logs. */
export const toTrialPath = (id: string): string => `/admin/sign-in/${id}`;

export const oidcTrial = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "",
      ({ caller }) => {
        if (!canReadDeployment(caller)) throw forbidden();
        return ctx.oidc.all.map((provider) => presentOidcProvider(provider, ctx.accessUrl));
      },
      {
        user: true,
        response: { 200: OidcProviders, ...fails(401, 403) },
        detail: operation({
          tags,
          operationId: "listOidcProviders",
          summary: "List sign-in providers",
          description: "Returns each provider's configuration, without its secret. Available to owners and auditors.",
          access: "admins",
          scope: "user:read",
        }),
      },
    )
    .post(
      "/:provider/try",
      async ({ caller, params, set, status }) => {
        if (!canChangeDeployment(caller)) throw forbidden();
        const client = ctx.oidc.get(params.provider);
        const callbackUrl = redirectUri(params.provider, ctx.accessUrl);
        const { url, checks } = await client
          .begin(callbackUrl.href)
          .catch((error) => Promise.reject(toSignInError(error)));
        const sealed = sealState(ctx, params.provider, {
          checks,
          back: toTrialPath(params.provider),
          trial_of: caller.user_id,
        });
        set.headers["set-cookie"] = formatStateCookie(ctx, params.provider, sealed);
        return status(201, { url: url.href });
      },
      {
        user: true,
        params,
        response: { 201: OidcTrialStarted, ...fails(401, 403, 404, 503) },
        detail: operation({
          tags,
          operationId: "startOidcTrial",
          summary: "Start testing a sign-in provider",
          description:
            "Returns the `url` to redirect the browser to, which then returns to the test page. No one is signed in.",
          access: "admins",
          scope: "all",
        }),
      },
    )
    .post(
      "/:provider/try/complete",
      async ({ caller, params, body, request, set }) => {
        if (!canChangeDeployment(caller)) throw forbidden();
        const client = ctx.oidc.get(params.provider);
        const { checks, trial_of } = requireStartedSignIn(ctx, params.provider, request);
        if (trial_of !== caller.user_id) throw new AppError("forbidden", "You have not started this test.");
        set.headers["set-cookie"] = formatStateCookie(ctx, params.provider, "");
        const callback = redirectUri(params.provider, ctx.accessUrl);
        callback.search = body.query;
        const { claims } = await client
          .complete(callback, checks)
          .catch((error) => Promise.reject(toSignInError(error)));
        return tryPerson(ctx, client, claims);
      },
      {
        user: true,
        params,
        body: OidcTrialRequest,
        response: { 200: OidcTrial, ...fails(400, 401, 403, 404, 415, 503) },
        detail: operation({
          tags,
          operationId: "completeOidcTrial",
          summary: "Get the result of a sign-in provider test",
          description:
            "Returns the claims and groups of the user who signed in, and the roles that these would assign. Stores nothing. Works once, for the browser and user that started the test.",
          example: { query: "?code=…&state=…" },
          access: "admins",
          scope: "all",
        }),
      },
    );
