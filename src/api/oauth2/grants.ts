// Access that a user has granted to applications (rules OA-15, OA-16).
import { t } from "elysia";
import { toRfc3339 } from "#base/clock.ts";
import { listGrants } from "#db/oauth2/grants.ts";
import { endUserGrant } from "#domain/oauth2/grants.ts";
import { loadKeysOwner } from "#domain/users/api-key.ts";
import { userPath as params } from "#domain/users/find.ts";
import { OAuth2Grant } from "#schema/oauth2/grant.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, NoContent } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["OAuth 2"];
const user = true;
const grantPath = t.Object({
  user: params.properties.user,
  grant: t.String({ maxLength: 64, description: "The ID of the grant." }),
});

export const oauth2Grants = (ctx: ApiContext) =>
  routes({ prefix: "/users" })
    .use(callers)
    .get(
      "/:user/oauth2-grants",
      async ({ caller, params }) => {
        const { id } = await loadKeysOwner(ctx, params.user, caller);
        const rows = await ctx.store.all(listGrants({ user_id: id }));
        const now = ctx.clock.now();
        return rows
          .filter(({ grant }) => (grant.refresh_expires_at ?? 0) > now)
          .map(
            ({ grant, app, key }): OAuth2Grant => ({
              id: grant.key_id,
              app: { id: app.id, name: app.name, icon: app.icon, self_registered: app.self_registered },
              scopes: grant.scopes,
              created_at: toRfc3339(grant.created_at),
              last_used: toRfc3339(Math.max(key.last_used, grant.updated_at)),
              expires_at: toRfc3339(grant.refresh_expires_at ?? 0),
            }),
          );
      },
      {
        user,
        params,
        response: { 200: t.Array(OAuth2Grant), ...fails(401, 403, 404) },
        detail: operation({
          tags,
          operationId: "listOAuth2Grants",
          summary: "List your OAuth grants",
          description: "Returns grants, newest first.",
          access: "owner",
          scope: "api_key:read",
        }),
      },
    )
    .delete(
      "/:user/oauth2-grants/:grant",
      async ({ caller, params, status }) => {
        const { id } = await loadKeysOwner(ctx, params.user, caller);
        await endUserGrant(ctx, id, params.grant);
        return status(204, undefined);
      },
      {
        user,
        params: grantPath,
        response: { 204: NoContent, ...fails(401, 403, 404) },
        detail: operation({
          tags,
          operationId: "deleteOAuth2Grant",
          summary: "Revoke an OAuth grant",
          description: "Revokes the grant immediately and closes the application's open connections.",
          audit: target.deletes(target.oauth2Grant),
          access: "owner",
          scope: "api_key:delete",
          changesAccess: "never",
        }),
      },
    );
