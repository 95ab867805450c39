// API keys of a user: tokens made on purpose and keys for browsers (facts/platform 8.2). Shown once, kept as a hash, gone at once
// when revoked, together with what was opened with them (rules ID-8 to ID-10).
import { Elysia, t } from "elysia";
import { invalidField, notFound } from "#base/errors.ts";
import { keyId } from "#base/ids.ts";
import { deleteKey, findKeyByName, isKeyStill, listAllTokens, listTokens, updateKey } from "#db/users/api-keys.ts";
import { isOwner } from "#domain/access.ts";
import { keyAt, keysOwnerAt, scopesNamed, showKey, withinOwn } from "#domain/users/api-key.ts";
import { keyChanged } from "#domain/users/audit.ts";
import { LOGIN_SECONDS, newKey, scopeColumns, scopesOf } from "#domain/users/keys.ts";
import { lifetimeSeconds, maxSeconds, nanoseconds } from "#domain/users/lifetime.ts";
import { takenOr } from "#domain/users/taken.ts";
import { userPath as params } from "#domain/users/user.ts";
import { ApiKey, CreateTokenRequest, NewKey, TokenConfig, UpdateTokenRequest } from "#schema/api-key.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { seenOf } from "../http/identify.ts";
import { flagOf, flagQuery } from "../http/query-flag.ts";
import { fails, NoContent } from "../http/responses.ts";

const tags = ["API keys"];
const user = true;
const path = params.properties.user;
const keyPath = t.Object({ user: path, key: t.String({ maxLength: 64, description: "Id of the key." }) });
const namePath = t.Object({ user: path, name: t.String({ maxLength: 64, description: "Name of the token." }) });

export const tokens = (ctx: ApiContext) =>
  new Elysia()
    .use(callers)
    .post(
      "/:user/keys",
      async ({ caller, params, request, status }) => {
        const { id } = await keysOwnerAt(ctx, params.user, caller);
        const now = ctx.clock.now();
        const allowed_addresses = await withinOwn(ctx, caller, { scopes: ["all"], allowed_addresses: [] });
        const { token, statement, row } = newKey({
          ...{ user_id: id, login_type: "password", lifetime_seconds: LOGIN_SECONDS, now },
          ...{ allowed_addresses, seen: seenOf(request, ctx.addresses) },
        });
        const told = keyChanged(row, { after: row }, now);
        await ctx.store.commit([isKeyStill({ id: caller.key_id, now }), statement, told]);
        return status(201, { key: token });
      },
      {
        ...{ user, params },
        response: { 201: NewKey, ...fails(401, 403, 404, 409) },
        detail: { tags, summary: "Create a session key", description: "Counts 24 hours from its last use." },
      },
    )
    .get(
      "/:user/keys/tokens",
      async ({ caller, params, query }) => {
        const owner = await keysOwnerAt(ctx, params.user, caller);
        const now = flagOf("include_expired", query.include_expired) ? 0 : ctx.clock.now();
        if (flagOf("include_all", query.include_all) && isOwner(caller)) {
          const rows = await ctx.store.scan(listAllTokens({ now }));
          return rows.map(({ key, username }) => showKey(key, username));
        }
        const rows = await ctx.store.all(listTokens({ user_id: owner.id, now }));
        return rows.map((row) => showKey(row, owner.username));
      },
      {
        ...{ user, params },
        query: t.Object({
          include_all: flagQuery("Those of everybody, for owners."),
          include_expired: flagQuery("Also the expired."),
        }),
        response: { 200: t.Array(ApiKey), ...fails(400, 401, 403, 404) },
        detail: { tags, summary: "List tokens", description: "Oldest first. An owner may ask for those of everybody." },
      },
    )
    .post(
      "/:user/keys/tokens",
      async ({ caller, params, body, status }) => {
        const owner = await keysOwnerAt(ctx, params.user, caller);
        if (body.allow_list?.some(({ type, id }) => type !== "*" || id !== "*")) {
          throw invalidField("allow_list", "Tokens cannot be bound to single resources.");
        }
        const now = ctx.clock.now();
        const scopes = scopesNamed(body.scope, body.scopes);
        const allowed_addresses = await withinOwn(ctx, caller, {
          ...{ scopes, allowed_addresses: body.allowed_addresses ?? [] },
        });
        const { token, statement, row } = newKey({
          ...{ user_id: owner.id, login_type: "token", now, scopes, allowed_addresses },
          token_name: body.token_name || `token-${keyId()}`,
          lifetime_seconds: lifetimeSeconds(body.lifetime, owner.roles),
        });
        await ctx.store
          .commit([isKeyStill({ id: caller.key_id, now }), statement, keyChanged(row, { after: row }, now)])
          .catch((error) => Promise.reject(takenOr(error, { token_name: "token_name", api_keys_name: "token_name" })));
        return status(201, { key: token });
      },
      {
        ...{ user, params },
        body: CreateTokenRequest,
        response: { 201: NewKey, ...fails(400, 401, 403, 404, 409, 415) },
        detail: {
          tags,
          summary: "Create a token",
          description: "The answer is the only place where it is ever shown.",
        },
      },
    )
    .get(
      "/:user/keys/tokens/tokenconfig",
      async ({ caller, params }) => {
        const owner = await keysOwnerAt(ctx, params.user, caller);
        return { max_token_lifetime: nanoseconds(maxSeconds(owner.roles)) };
      },
      {
        ...{ user, params },
        response: { 200: TokenConfig, ...fails(401, 403, 404) },
        detail: { tags, summary: "How long tokens may live" },
      },
    )
    .get(
      "/:user/keys/tokens/:name",
      async ({ caller, params }) => {
        const owner = await keysOwnerAt(ctx, params.user, caller);
        const key = await ctx.store.get(findKeyByName({ user_id: owner.id, name: params.name }));
        if (!key) throw notFound();
        return showKey(key, owner.username);
      },
      {
        ...{ user, params: namePath },
        response: { 200: ApiKey, ...fails(401, 403, 404) },
        detail: { tags, summary: "Get a token by name" },
      },
    )
    .patch(
      "/:user/keys/tokens/:name",
      async ({ caller, params, body }) => {
        const owner = await keysOwnerAt(ctx, params.user, caller);
        const key = await ctx.store.get(findKeyByName({ user_id: owner.id, name: params.name }));
        if (!key) throw notFound();
        const scopes = body.scopes === undefined ? scopesOf(key) : scopesNamed(undefined, body.scopes);
        const allowed_addresses = await withinOwn(ctx, caller, {
          ...{ scopes, allowed_addresses: body.allowed_addresses ?? key.allowed_addresses },
        });
        const now = ctx.clock.now();
        const patch = { ...scopeColumns(scopes), allowed_addresses, updated_at: now };
        const changed = { ...key, ...patch };
        const told = keyChanged(key, { before: key, after: changed }, now);
        await ctx.store.commit([isKeyStill({ id: caller.key_id, now }), updateKey(key.id, patch, { expect: 1 }), told]);
        // What is open was opened under the old ones.
        ctx.topics.publish("key_gone", key.id, {});
        return showKey(changed, owner.username);
      },
      {
        ...{ user, params: namePath },
        body: UpdateTokenRequest,
        response: { 200: ApiKey, ...fails(400, 401, 403, 404, 409, 415) },
        detail: {
          tags,
          summary: "Change what a token may be used for",
          description: "Counts from the next request on; streams and WebSockets that it has opened end.",
        },
      },
    )
    .get(
      "/:user/keys/:key",
      async ({ caller, params }) => {
        const owner = await keysOwnerAt(ctx, params.user, caller);
        return showKey(await keyAt(ctx, owner, params.key), owner.username);
      },
      {
        ...{ user, params: keyPath },
        response: { 200: ApiKey, ...fails(401, 403, 404) },
        detail: { tags, summary: "Get a key" },
      },
    )
    .put(
      "/:user/keys/:key/expire",
      async ({ caller, params, status }) => {
        const owner = await keysOwnerAt(ctx, params.user, caller);
        const key = await keyAt(ctx, owner, params.key);
        const now = ctx.clock.now();
        const patch = { expires_at: now, updated_at: now };
        if (key.expires_at > now) {
          const told = keyChanged(key, { before: key, after: { ...key, ...patch } }, now);
          await ctx.store.commit([updateKey(key.id, patch), told]);
        }
        ctx.topics.publish("key_gone", key.id, {});
        return status(204, undefined);
      },
      {
        ...{ user, params: keyPath },
        response: { 204: NoContent, ...fails(401, 403, 404) },
        detail: { tags, summary: "Expire a key", description: "It stays in the list of expired tokens." },
      },
    )
    .delete(
      "/:user/keys/:key",
      async ({ caller, params, status }) => {
        const owner = await keysOwnerAt(ctx, params.user, caller);
        const key = await keyAt(ctx, owner, params.key);
        await ctx.store.commit([deleteKey(key.id), keyChanged(key, { before: key }, ctx.clock.now())]);
        ctx.topics.publish("key_gone", key.id, {});
        return status(204, undefined);
      },
      {
        ...{ user, params: keyPath },
        response: { 204: NoContent, ...fails(401, 403, 404) },
        detail: { tags, summary: "Delete a key", description: "Counts at once; what was opened with it ends." },
      },
    );
