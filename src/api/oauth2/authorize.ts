// Backs the page /oauth2/authorize: what an application requests, and the user's decision (rules OA-5 to OA-9). The decision is an ordinary
// write, so another site's page cannot send it.
import { notFound } from "#base/errors.ts";
import { answerTo, approve, findRequestedApp, resolveScopes, toProblemRedirect } from "#domain/oauth2/authorize.ts";
import { OAuth2Problem } from "#domain/oauth2/problem.ts";
import { formatDestination } from "#domain/oauth2/redirects.ts";
import {
  AuthorizationAnswer,
  AuthorizationParameters,
  AuthorizationRedirect,
  AuthorizationRequest,
} from "#schema/oauth2/grant.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { ANY_ID } from "../http/document/example-ids.ts";
import { toSeen } from "../http/identify.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["OAuth 2"];
const user = true;
const PATH = "/oauth2-provider/authorize";

export const oauth2Authorize = (ctx: ApiContext) => {
  const requireEnabled = (): void => {
    if (!ctx.config.oauth2_provider) throw notFound();
  };
  return routes()
    .use(callers)
    .get(
      PATH,
      async ({ query }): Promise<AuthorizationRequest> => {
        requireEnabled();
        const app = await findRequestedApp(ctx, query);
        const { id, name, icon, self_registered } = app;
        const base = { app: { id, name, icon, self_registered }, sends_to: formatDestination(query.redirect_uri) };
        try {
          return { ...base, scopes: resolveScopes(ctx, app, query) };
        } catch (error) {
          if (!(error instanceof OAuth2Problem)) throw error;
          return { ...base, scopes: [], error_redirect: toProblemRedirect(ctx, query, error) };
        }
      },
      {
        user,
        query: AuthorizationParameters,
        response: { 200: AuthorizationRequest, ...fails(400, 401, 403, 404) },
        detail: operation({
          tags,
          operationId: "getOAuth2AuthorizationRequest",
          summary: "Get an authorization request",
          description: "Returns 404 if the setting `oauth2_provider` is off.",
          access: "users",
          scope: "all",
        }),
      },
    )
    .post(
      PATH,
      async ({ caller, body, request }) => {
        requireEnabled();
        const { approve: isApproved, ...requested } = body;
        const app = await findRequestedApp(ctx, requested);
        try {
          const scopes = resolveScopes(ctx, app, requested);
          if (!isApproved) throw new OAuth2Problem("access_denied", "The user declined.");
          const code = await approve(ctx, caller, requested, { app, scopes, seen: toSeen(request, ctx.addresses) });
          return { redirect_to: answerTo(ctx, requested, { code }) };
        } catch (error) {
          if (!(error instanceof OAuth2Problem)) throw error;
          return { redirect_to: toProblemRedirect(ctx, requested, error) };
        }
      },
      {
        user,
        body: AuthorizationAnswer,
        response: { 200: AuthorizationRedirect, ...fails(400, 401, 403, 404, 409, 413) },
        detail: operation({
          tags,
          operationId: "answerOAuth2AuthorizationRequest",
          summary: "Approve or decline an authorization request",
          description:
            "For the consent page. Requires a signed-in session; API tokens can't approve access. Returns 404 if the setting `oauth2_provider` is off.",
          limit: 65_536,
          example: { client_id: ANY_ID, redirect_uri: "https://dashboard.example.com/callback", approve: true },
          access: "users",
          scope: "all",
        }),
      },
    );
};
