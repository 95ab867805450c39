// The caller's external accounts: list providers, link by web sign-in or device code, show a link's details, and unlink. Users can only
// manage their own (rules EA-5 to EA-11). The pages use only these routes.
import { t } from "elysia";
import { AppError, invalid } from "#base/errors.ts";
import { listLinks } from "#db/users/external-auth.ts";
import { presentLink, presentProvider } from "#domain/external-auth/present.ts";
import {
  ExternalAuth,
  ExternalAuthCallback,
  ExternalAuthDevice,
  ExternalAuthList,
  ExternalAuthPoll,
  ExternalAuthStart,
  ExternalAuthUnlinked,
} from "#schema/users/external-auth.ts";
import { authorizeUrl, ProviderError } from "#src/git/oauth.ts";
import type { Provider } from "#src/git/provider.ts";
import * as setting from "../audit/setting-targets.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, NoContent } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { createState, openDevice, openVerifier, sealDevice } from "./web-flow.ts";

const tags = ["External accounts"];
const params = t.Object({
  externalauth: t.String({ description: "The ID of the provider in the setting `external_auth`." }),
});

/** The callback URL that the operator registers at the provider, so its form must never change. */
const toCallbackUrl = (accessUrl: URL, provider: Provider): URL =>
  new URL(`/external-auth/${provider.id}/callback`, accessUrl);

export const externalAuth = (ctx: ApiContext) =>
  routes({ prefix: "/external-auth" })
    .use(callers)
    .use(linkRoutes(ctx))
    .use(webFlowRoutes(ctx))
    .use(deviceFlowRoutes(ctx));

const linkRoutes = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "",
      async ({ caller }) => {
        const rows = await ctx.store.all(listLinks({ user_id: caller.user_id }));
        const { providers } = ctx.links;
        return {
          providers: [...providers.values()].map(presentProvider),
          links: rows
            .filter((row) => providers.has(row.provider_id))
            .map((row) => presentLink(row, providers.get(row.provider_id), ctx.clock.now())),
        };
      },
      {
        user: true,
        response: { 200: ExternalAuthList, ...fails(401) },
        detail: operation({
          tags,
          operationId: "listExternalAccounts",
          summary: "List external accounts",
          description: "Returns all providers and the caller's links.",
          access: "users",
          scope: "user:read_personal",
        }),
      },
    )
    .get(
      "/:externalauth",
      async ({ caller, params }) => {
        const provider = ctx.links.provider(params.externalauth);
        const validity = await ctx.links.account(caller.user_id, provider);
        return {
          authenticated: validity !== undefined && validity.state !== "invalid",
          device: provider.device_flow,
          display_name: provider.display_name,
          supports_revocation: provider.revocation !== undefined,
          user: validity?.account ?? null,
        };
      },
      {
        user: true,
        params,
        response: { 200: ExternalAuth, ...fails(401, 404, 503) },
        detail: operation({
          tags,
          operationId: "getExternalAccount",
          summary: "Get an external account",
          description:
            "Returns the caller's account at a provider and checks with the provider whether the link works.",
          access: "users",
          scope: "user:read_personal",
        }),
      },
    )
    .delete(
      "/:externalauth",
      async ({ caller, params }) => {
        const failure = await ctx.links.unlink(caller.user_id, ctx.links.provider(params.externalauth));
        return failure ? { token_revoked: false, token_revocation_error: failure.message } : { token_revoked: true };
      },
      {
        user: true,
        params,
        response: { 200: ExternalAuthUnlinked, ...fails(401, 404, 503) },
        detail: operation({
          tags,
          operationId: "unlinkExternalAccount",
          summary: "Unlink an external account",
          description: "Deletes the token immediately, then asks the provider to revoke it.",
          audit: target.deletes(setting.linkIn("externalauth")),
          access: "users",
          scope: "user:update_personal",
          outlivesGrant: true,
        }),
      },
    );

const webFlowRoutes = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .post(
      "/:externalauth/start",
      ({ caller, params }) => {
        const provider = ctx.links.provider(params.externalauth);
        if (provider.device_flow || !provider.auth_url) throw invalid("This provider takes device codes only.");
        const { state, verifier } = createState(ctx, caller, provider);
        return {
          url: authorizeUrl(provider, { redirect: toCallbackUrl(ctx.accessUrl, provider), state, verifier }).href,
        };
      },
      {
        user: true,
        params,
        response: { 200: ExternalAuthStart, ...fails(400, 401, 404) },
        detail: operation({
          tags,
          operationId: "startExternalAccountLink",
          summary: "Start linking an external account",
          description:
            "Returns the provider's URL. The provider sends the browser back to `/external-auth/{id}/callback`. Valid for ten minutes, in this session.",
          access: "users",
          outlivesGrant: true,
          scope: "user:update_personal",
        }),
      },
    )
    .post(
      "/:externalauth/callback",
      async ({ caller, params, body, status }) => {
        const provider = ctx.links.provider(params.externalauth);
        const verifier = openVerifier(ctx, caller, provider, body.state);
        const redirect = toCallbackUrl(ctx.accessUrl, provider);
        const tokens = await ctx.links.client
          .exchange(provider, { code: body.code, redirect, verifier })
          .catch(rethrowProviderError);
        await ctx.links.put(caller.user_id, provider, tokens);
        return status(204, undefined);
      },
      {
        user: true,
        params,
        body: ExternalAuthCallback,
        response: { 204: NoContent, ...fails(400, 401, 404, 503) },
        detail: operation({
          tags,
          operationId: "completeExternalAccountLink",
          summary: "Complete linking an external account",
          example: { code: "from the provider", state: "as it was given to the provider" },
          access: "users",
          outlivesGrant: true,
          scope: "user:update_personal",
        }),
      },
    );

const deviceFlowRoutes = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/:externalauth/device",
      async ({ caller, params }) => {
        const provider = requireDeviceProvider(ctx, params.externalauth);
        const { device_code, expires_in, interval, ...rest } = await ctx.links.client
          .startDevice(provider)
          .catch(rethrowProviderError);
        const sealed = sealDevice(ctx, caller, provider.id, device_code);
        return { ...rest, device_code: sealed, expires_in: Math.ceil(expires_in), interval: Math.ceil(interval) };
      },
      {
        user: true,
        params,
        response: { 200: ExternalAuthDevice, ...fails(400, 401, 404, 503) },
        detail: operation({
          tags,
          operationId: "startExternalAccountDevice",
          summary: "Start linking an external account with a device code",
          description: "Returns a new code each time.",
          access: "users",
          scope: "user:read_personal",
        }),
      },
    )
    .post(
      "/:externalauth/device",
      async ({ caller, params, body, status }) => {
        const provider = requireDeviceProvider(ctx, params.externalauth);
        const code = openDevice(ctx, caller, provider.id, body.device_code);
        const tokens = await ctx.links.client.pollDevice(provider, code).catch(rethrowProviderError);
        await ctx.links.put(caller.user_id, provider, tokens);
        return status(204, undefined);
      },
      {
        user: true,
        params,
        body: ExternalAuthPoll,
        response: { 204: NoContent, ...fails(400, 401, 404, 503) },
        detail: operation({
          tags,
          operationId: "pollExternalAccountDevice",
          summary: "Complete linking an external account with a device code",
          description:
            "Returns 204 once the account is linked, and 400 until then. The `detail` of the error is the provider's error code: authorization_pending (retry), slow_down (retry less often), access_denied or expired_token.",
          example: { device_code: "from the response to the start request" },
          access: "users",
          outlivesGrant: true,
          scope: "user:update_personal",
        }),
      },
    );

const requireDeviceProvider = ({ links }: ApiContext, id: string): Provider => {
  const provider = links.provider(id);
  if (!provider.device_flow) throw invalid("This provider has no device flow.");
  return provider;
};

/** Maps a provider's rejection to 400 with its message as detail, and a failure to 503. */
const rethrowProviderError = (error: unknown): never => {
  if (!(error instanceof ProviderError)) throw error;
  if (error.kind === "denied")
    throw new AppError("invalid", "The provider rejected the request.", { detail: error.code || error.message });
  throw new AppError("overloaded", "The provider cannot be reached.", { detail: error.message });
};
