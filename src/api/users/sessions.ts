// Lists a user's sessions, with the address and device of their last use, and revokes them (rule ID-23). Tokens are in tokens.ts.
import { t } from "elysia";
import { toRfc3339 } from "#base/clock.ts";
import { notFound } from "#base/errors.ts";
import { type ApiKey, listSessions } from "#db/users/api-keys.ts";
import { loadKeysOwner, loadUserKey } from "#domain/users/api-key.ts";
import { parseDevice } from "#domain/users/device.ts";
import { userPath as params } from "#domain/users/find.ts";
import { isSignIn } from "#domain/users/keys.ts";
import { endOtherSessions, removeKey } from "#domain/users/keys-change.ts";
import { Session } from "#schema/users/api-key.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, NoContent } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["API keys"];
const user = true;
const sessionPath = t.Object({
  user: params.properties.user,
  session: t.String({ maxLength: 64, description: "The ID of the session." }),
});

const presentSession = (key: ApiKey, currentKeyId: string): Session => ({
  id: key.id,
  current: key.id === currentKeyId,
  device: parseDevice(key.user_agent),
  user_agent: key.user_agent,
  ip_address: key.ip_address,
  created_at: toRfc3339(key.created_at),
  last_used: toRfc3339(key.last_used),
  expires_at: toRfc3339(key.expires_at),
});

export const sessions = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/:user/sessions",
      async ({ caller, params }) => {
        const { id } = await loadKeysOwner(ctx, params.user, caller);
        const keys = await ctx.store.all(listSessions({ user_id: id, now: ctx.clock.now() }));
        return keys.map((key) => presentSession(key, caller.key_id));
      },
      {
        user,
        params,
        response: { 200: t.Array(Session), ...fails(401, 403, 404) },
        detail: operation({
          tags,
          operationId: "listSessions",
          summary: "List a user's sessions",
          description: "Returns active sessions, most recently used first.",
          access: "owner",
          scope: "api_key:read",
        }),
      },
    )
    .delete(
      "/:user/sessions",
      async ({ caller, params, status }) => {
        await endOtherSessions(ctx, await loadKeysOwner(ctx, params.user, caller), caller);
        return status(204, undefined);
      },
      {
        user,
        params,
        response: { 204: NoContent, ...fails(401, 403, 404) },
        detail: operation({
          tags,
          operationId: "deleteOtherSessions",
          summary: "End all other sessions",
          description: "Ends the sessions immediately and closes their open connections. API tokens are kept.",
          audit: target.deletes(target.sessions),
          access: "owner",
          scope: "api_key:delete",
          changesAccess: "never",
        }),
      },
    )
    .delete(
      "/:user/sessions/:session",
      async ({ caller, params, status }) => {
        const owner = await loadKeysOwner(ctx, params.user, caller);
        const key = await loadUserKey(ctx, owner, params.session);
        if (!isSignIn(key)) throw notFound();
        await removeKey(ctx, key, caller);
        return status(204, undefined);
      },
      {
        user,
        params: sessionPath,
        response: { 204: NoContent, ...fails(401, 403, 404) },
        detail: operation({
          tags,
          operationId: "deleteSession",
          summary: "End a session",
          description: "Ends the session immediately and closes its open connections.",
          audit: target.deletes(target.session),
          access: "owner",
          scope: "api_key:delete",
          changesAccess: "never",
        }),
      },
    );
