// User secrets, which workspaces get as environment variables or files. Their values are never returned.
import { t } from "elysia";
import { toRfc3339 } from "#base/clock.ts";
import { listUserSecrets, type UserSecretRow } from "#db/users/secrets.ts";
import { userPath } from "#domain/users/find.ts";
import { changeSecret, createSecret, findSecret, findSecretOwner, removeSecret } from "#domain/users/secrets.ts";
import { CreateUserSecret, UpdateUserSecret, UserSecret } from "#schema/users/user-secret.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, NoContent } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["Secrets"];
const user = true;
const path = t.Object({
  user: userPath.properties.user,
  secret: t.String({ description: "The name of the secret, case-insensitive." }),
});

const presentSecret = ({ id, name, description, env_name, file_path, ...row }: UserSecretRow): UserSecret => ({
  id,
  name,
  description,
  env_name,
  file_path,
  created_at: toRfc3339(row.created_at),
  updated_at: toRfc3339(row.updated_at),
});

export const userSecrets = (ctx: ApiContext) =>
  routes({ prefix: "/users" })
    .use(callers)
    .get(
      "/:user/secrets",
      async ({ caller, params }) => {
        const user_id = await findSecretOwner(ctx, params.user, caller);
        return (await ctx.store.all(listUserSecrets({ user_id }))).map(presentSecret);
      },
      {
        user,
        params: userPath,
        response: { 200: t.Array(UserSecret), ...fails(401, 403, 404) },
        detail: operation({
          tags,
          operationId: "listSecrets",
          summary: "List your secrets",
          description: "Returns secrets without their values, sorted by name.",
          access: "owner_only",
          scope: "user_secret:read",
        }),
      },
    )
    .post(
      "/:user/secrets",
      async ({ caller, params, body, status }) => {
        const user_id = await findSecretOwner(ctx, params.user, caller);
        return status(201, presentSecret(await createSecret(ctx, user_id, body)));
      },
      {
        user,
        params: userPath,
        body: CreateUserSecret,
        response: { 201: UserSecret, ...fails(400, 401, 403, 404, 409, 413) },
        detail: operation({
          tags,
          operationId: "createSecret",
          summary: "Create a secret",
          description:
            "Encrypts and stores the secret; its value is never returned. Your running workspaces get it: new processes see it, and its file is written.",
          example: { name: "registry", value: "a token of the registry", env_name: "REGISTRY_TOKEN" },
          access: "owner_only",
          outlivesGrant: true,
          scope: "user_secret:create",
        }),
      },
    )
    .get("/:user/secrets/:secret", async ({ caller, params }) => presentSecret(await findSecret(ctx, params, caller)), {
      user,
      params: path,
      response: { 200: UserSecret, ...fails(401, 403, 404) },
      detail: operation({
        tags,
        operationId: "getSecret",
        summary: "Get a secret",
        description: "Returns the secret without its value.",
        access: "owner_only",
        scope: "user_secret:read",
      }),
    })
    .patch(
      "/:user/secrets/:secret",
      async ({ caller, params, body }) => {
        const secret = await findSecret(ctx, params, caller);
        return presentSecret(await changeSecret(ctx, secret, body));
      },
      {
        user,
        params: path,
        body: UpdateUserSecret,
        response: { 200: UserSecret, ...fails(400, 401, 403, 404, 409, 413) },
        detail: operation({
          tags,
          operationId: "updateSecret",
          summary: "Update a secret",
          description: "Omitted fields are unchanged. Your running workspaces are updated.",
          audit: target.writes(target.secret),
          example: { value: "another token of the registry" },
          access: "owner_only",
          outlivesGrant: true,
          scope: "user_secret:update",
        }),
      },
    )
    .delete(
      "/:user/secrets/:secret",
      async ({ caller, params, set }) => {
        await removeSecret(ctx, await findSecret(ctx, params, caller));
        set.status = 204;
      },
      {
        user,
        params: path,
        response: { 204: NoContent, ...fails(401, 403, 404) },
        detail: operation({
          tags,
          operationId: "deleteSecret",
          summary: "Delete a secret",
          description:
            "Your running workspaces are updated: running processes keep the secret, new processes don't get it, and its file is removed unless it was changed.",
          audit: target.deletes(target.secret),
          access: "owner_only",
          scope: "user_secret:delete",
          outlivesGrant: true,
        }),
      },
    );
