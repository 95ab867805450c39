// OAuth 2 applications that ask users for access, and their secrets, for owners (rules OA-1 to OA-3).
import { t } from "elysia";
import { toRfc3339 } from "#base/clock.ts";
import { listOAuth2Apps, listOAuth2Secrets, type OAuth2AppRow, type OAuth2SecretRow } from "#db/oauth2/apps.ts";
import {
  changeApp,
  createApp,
  createAppSecret,
  findApp,
  findAppToChange,
  removeApp,
  removeAppSecret,
  requireAppChange,
  requireAppManager,
} from "#domain/oauth2/apps.ts";
import {
  type AuthMethod,
  CreateOAuth2App,
  NewOAuth2Secret,
  OAuth2App,
  OAuth2Secret,
  UpdateOAuth2App,
} from "#schema/oauth2/app.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, NoContent } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["OAuth 2"];
const user = true;
const params = t.Object({ oauth2_app: t.String({ format: "uuid", description: "The ID of the application." }) });
const secretPath = t.Object({
  oauth2_app: params.properties.oauth2_app,
  oauth2_secret: t.String({ format: "uuid", description: "The ID of the secret." }),
});

const presentSecret = ({ id, last_characters, created_at, last_used_at }: OAuth2SecretRow): OAuth2Secret => ({
  id,
  client_secret_truncated: last_characters,
  created_at: toRfc3339(created_at),
  last_used_at: last_used_at === null ? null : toRfc3339(last_used_at),
});

export const oauth2Apps = (ctx: ApiContext) => {
  const present = (row: OAuth2AppRow): OAuth2App => ({
    id: row.id,
    name: row.name,
    icon: row.icon,
    callback_url: row.redirect_uris[0] ?? "",
    redirect_uris: row.redirect_uris,
    scopes: row.scopes,
    token_endpoint_auth_method: row.auth_method as AuthMethod,
    self_registered: row.self_registered,
    created_at: toRfc3339(row.created_at),
    updated_at: toRfc3339(row.updated_at),
    endpoints: {
      authorization: new URL("/oauth2/authorize", ctx.accessUrl).href,
      token: new URL("/oauth2/token", ctx.accessUrl).href,
    },
  });
  return routes({ prefix: "/oauth2-provider/apps" })
    .use(callers)
    .get(
      "",
      async ({ caller }) => {
        requireAppManager(caller);
        return (await ctx.store.all(listOAuth2Apps())).map(present);
      },
      {
        user,
        response: { 200: t.Array(OAuth2App), ...fails(401, 403) },
        detail: operation({
          tags,
          operationId: "listOAuth2Apps",
          summary: "List OAuth applications",
          description: "Returns applications created by owners, sorted by name, then self-registered ones.",
          access: "admins",
          scope: "all",
        }),
      },
    )
    .post(
      "",
      async ({ caller, body, status }) => {
        await requireAppChange(ctx, caller);
        return status(201, present(await createApp(ctx, body)));
      },
      {
        user,
        body: CreateOAuth2App,
        response: { 201: OAuth2App, ...fails(400, 401, 403, 409, 413) },
        detail: operation({
          tags,
          operationId: "createOAuth2App",
          summary: "Create an OAuth application",
          description:
            "Creates an application that can request access from users. Its client secret is created separately.",
          example: { name: "Review board", callback_url: "https://reviews.example.com/callback" },
          access: "admins",
          scope: "all",
        }),
      },
    )
    .get("/:oauth2_app", async ({ caller, params }) => present(await findApp(ctx, params.oauth2_app, caller)), {
      user,
      params,
      response: { 200: OAuth2App, ...fails(401, 403, 404) },
      detail: operation({
        tags,
        operationId: "getOAuth2App",
        summary: "Get an OAuth application",
        access: "admins",
        scope: "all",
      }),
    })
    .put(
      "/:oauth2_app",
      async ({ caller, params, body }) =>
        present(await changeApp(ctx, await findAppToChange(ctx, params.oauth2_app, caller), body)),
      {
        user,
        params,
        body: UpdateOAuth2App,
        response: { 200: OAuth2App, ...fails(400, 401, 403, 404, 409, 413) },
        detail: operation({
          tags,
          operationId: "updateOAuth2App",
          summary: "Update an OAuth application",
          description: "Omitted fields and existing grants are unchanged.",
          audit: target.writes(target.oauth2App),
          example: { name: "Dashboard", redirect_uris: ["https://dashboard.example.com/callback"] },
          access: "admins",
          scope: "all",
        }),
      },
    )
    .delete(
      "/:oauth2_app",
      async ({ caller, params, status }) => {
        await removeApp(ctx, await findAppToChange(ctx, params.oauth2_app, caller));
        return status(204, undefined);
      },
      {
        params,
        user,
        response: { 204: NoContent, ...fails(401, 403, 404) },
        detail: operation({
          tags,
          operationId: "deleteOAuth2App",
          summary: "Delete an OAuth application",
          description: "Deletes the application, revokes its grants and closes its open connections immediately.",
          audit: target.deletes(target.oauth2App),
          access: "admins",
          scope: "all",
        }),
      },
    )
    .get(
      "/:oauth2_app/secrets",
      async ({ caller, params }) => {
        const { id } = await findApp(ctx, params.oauth2_app, caller);
        return (await ctx.store.all(listOAuth2Secrets({ app_id: id }))).map(presentSecret);
      },
      {
        user,
        params,
        response: { 200: t.Array(OAuth2Secret), ...fails(401, 403, 404) },
        detail: operation({
          tags,
          operationId: "listOAuth2AppSecrets",
          summary: "List secrets of an OAuth application",
          access: "admins",
          scope: "all",
        }),
      },
    )
    .post(
      "/:oauth2_app/secrets",
      async ({ caller, params, status }) => {
        const { id, text } = await createAppSecret(ctx, await findAppToChange(ctx, params.oauth2_app, caller));
        return status(201, { id, client_secret_full: text });
      },
      {
        user,
        params,
        response: { 201: NewOAuth2Secret, ...fails(401, 403, 404, 409) },
        detail: operation({
          tags,
          operationId: "createOAuth2AppSecret",
          summary: "Create a secret for an OAuth application",
          description: "Returns the secret, only once. Other secrets stay valid.",
          access: "admins",
          scope: "all",
        }),
      },
    )
    .delete(
      "/:oauth2_app/secrets/:oauth2_secret",
      async ({ caller, params, status }) => {
        await removeAppSecret(ctx, await findAppToChange(ctx, params.oauth2_app, caller), params.oauth2_secret);
        return status(204, undefined);
      },
      {
        user,
        params: secretPath,
        response: { 204: NoContent, ...fails(401, 403, 404) },
        detail: operation({
          tags,
          operationId: "deleteOAuth2AppSecret",
          summary: "Delete a secret of an OAuth application",
          description: "Invalidates the secret. Existing grants are kept.",
          audit: target.deletes(target.oauth2Secret),
          access: "admins",
          scope: "all",
        }),
      },
    );
};
