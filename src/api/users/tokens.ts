// API keys of a user: tokens that they create, and keys for browsers (facts/platform 8.2). A key is shown once and stored as a hash.
// Revoking it immediately ends every connection that was opened with it (rules ID-8 to ID-10).
import { t } from "elysia";
import { notFound } from "#base/errors.ts";
import { findKeyByName, listAllTokens, listTokens } from "#db/users/api-keys.ts";
import { isOwner } from "#domain/access.ts";
import { loadKeysOwner, loadUserKey, presentApiKey } from "#domain/users/api-key.ts";
import { userPath as params } from "#domain/users/find.ts";
import { changeToken, createSessionKey, createToken, expireKey, removeKey } from "#domain/users/keys-change.ts";
import { getMaxSeconds, toNanoseconds } from "#domain/users/lifetime.ts";
import { ApiKey, CreateTokenRequest, NewKey, TokenConfig, UpdateTokenRequest } from "#schema/users/api-key.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { toSeen } from "../http/identify.ts";
import { operation } from "../http/operation.ts";
import { flagQuery, parseFlag } from "../http/query.ts";
import { fails, NoContent } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["API keys"];
const user = true;
const userParam = params.properties.user;
const keyPath = t.Object({ user: userParam, key: t.String({ maxLength: 64, description: "The ID of the key." }) });
const namePath = t.Object({
  user: userParam,
  name: t.String({ maxLength: 64, description: "The name of the token." }),
});

export const tokens = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .post(
      "/:user/keys",
      async ({ caller, params, request, status }) => {
        const owner = await loadKeysOwner(ctx, params.user, caller);
        const token = await createSessionKey(ctx, owner, caller, toSeen(request, ctx.addresses));
        return status(201, { key: token });
      },
      {
        user,
        params,
        response: { 201: NewKey, ...fails(401, 403, 404, 409) },
        detail: operation({
          tags,
          operationId: "createSessionKey",
          summary: "Create a session key",
          description: "Returns a key that expires 24 hours after its last use.",
          access: "owner",
          scope: "all",
        }),
      },
    )
    .get(
      "/:user/keys/tokens",
      async ({ caller, params, query }) => {
        const owner = await loadKeysOwner(ctx, params.user, caller);
        const now = parseFlag(query.include_expired) ? 0 : ctx.clock.now();
        if (parseFlag(query.include_all) && isOwner(caller)) {
          const rows = await ctx.store.scan(listAllTokens({ now }));
          return rows.map(({ key, username }) => presentApiKey(key, username));
        }
        const rows = await ctx.store.all(listTokens({ user_id: owner.id, now }));
        return rows.map((row) => presentApiKey(row, owner.username));
      },
      {
        user,
        params,
        query: t.Object({
          include_all: flagQuery("Also return other users' tokens. Available to owners."),
          include_expired: flagQuery("Also return expired tokens."),
        }),
        response: { 200: t.Array(ApiKey), ...fails(400, 401, 403, 404) },
        detail: operation({
          tags,
          operationId: "listTokens",
          summary: "List tokens",
          description: "Returns tokens, oldest first. Owners can list all users' tokens.",
          access: "owner",
          scope: "api_key:read",
        }),
      },
    )
    .post(
      "/:user/keys/tokens",
      async ({ caller, params, body, status }) => {
        const owner = await loadKeysOwner(ctx, params.user, caller);
        return status(201, { key: await createToken(ctx, owner, caller, body) });
      },
      {
        user,
        params,
        body: CreateTokenRequest,
        response: { 201: NewKey, ...fails(400, 401, 403, 404, 409, 415) },
        detail: operation({
          tags,
          operationId: "createToken",
          summary: "Create a token",
          description: "Returns the token, only once.",
          example: { token_name: "laptop", lifetime: "7d" },
          access: "owner",
          scope: "api_key:create",
        }),
      },
    )
    .get(
      "/:user/keys/tokens/tokenconfig",
      async ({ caller, params }) => {
        const owner = await loadKeysOwner(ctx, params.user, caller);
        return { max_token_lifetime: toNanoseconds(getMaxSeconds(owner.roles)) };
      },
      {
        user,
        params,
        response: { 200: TokenConfig, ...fails(401, 403, 404) },
        detail: operation({
          tags,
          operationId: "getTokenConfig",
          summary: "Get the token configuration",
          access: "owner",
          scope: "api_key:read",
        }),
      },
    )
    .get(
      "/:user/keys/tokens/:name",
      async ({ caller, params }) => {
        const owner = await loadKeysOwner(ctx, params.user, caller);
        const key = await ctx.store.get(findKeyByName({ user_id: owner.id, name: params.name }));
        if (!key) throw notFound();
        return presentApiKey(key, owner.username);
      },
      {
        user,
        params: namePath,
        response: { 200: ApiKey, ...fails(401, 403, 404) },
        detail: operation({
          tags,
          operationId: "getTokenByName",
          summary: "Get a token by name",
          access: "owner",
          scope: "api_key:read",
        }),
      },
    )
    .patch(
      "/:user/keys/tokens/:name",
      async ({ caller, params, body }) => {
        const owner = await loadKeysOwner(ctx, params.user, caller);
        const key = await ctx.store.get(findKeyByName({ user_id: owner.id, name: params.name }));
        if (!key) throw notFound();
        return presentApiKey(await changeToken(ctx, key, caller, body), owner.username);
      },
      {
        user,
        params: namePath,
        body: UpdateTokenRequest,
        response: { 200: ApiKey, ...fails(400, 401, 403, 404, 409, 415) },
        detail: operation({
          tags,
          operationId: "updateToken",
          summary: "Update a token",
          description: "Applies from the next request. Streams and WebSockets opened with the token are closed.",
          audit: target.writes(target.namedToken),
          example: { scopes: ["workspace:read"] },
          access: "owner",
          scope: "api_key:update",
          changesAccess: "never",
        }),
      },
    )
    .get(
      "/:user/keys/:key",
      async ({ caller, params }) => {
        const owner = await loadKeysOwner(ctx, params.user, caller);
        return presentApiKey(await loadUserKey(ctx, owner, params.key), owner.username);
      },
      {
        user,
        params: keyPath,
        response: { 200: ApiKey, ...fails(401, 403, 404) },
        detail: operation({
          tags,
          operationId: "getApiKey",
          summary: "Get an API key",
          access: "owner",
          scope: "api_key:read",
        }),
      },
    )
    .put(
      "/:user/keys/:key/expire",
      async ({ caller, params, status }) => {
        const owner = await loadKeysOwner(ctx, params.user, caller);
        await expireKey(ctx, await loadUserKey(ctx, owner, params.key), caller);
        return status(204, undefined);
      },
      {
        user,
        params: keyPath,
        response: { 204: NoContent, ...fails(401, 403, 404) },
        detail: operation({
          tags,
          operationId: "expireApiKey",
          summary: "Expire an API key",
          description: "The key stays in the list of expired tokens.",
          audit: target.writes(target.apiKey),
          access: "owner",
          scope: "api_key:update",
          changesAccess: "never",
        }),
      },
    )
    .delete(
      "/:user/keys/:key",
      async ({ caller, params, status }) => {
        const owner = await loadKeysOwner(ctx, params.user, caller);
        await removeKey(ctx, await loadUserKey(ctx, owner, params.key), caller);
        return status(204, undefined);
      },
      {
        user,
        params: keyPath,
        response: { 204: NoContent, ...fails(401, 403, 404) },
        detail: operation({
          tags,
          operationId: "deleteApiKey",
          summary: "Delete an API key",
          description: "Takes effect immediately and closes the key's open connections.",
          audit: target.deletes(target.apiKey),
          access: "owner",
          scope: "api_key:delete",
          changesAccess: "never",
        }),
      },
    );
