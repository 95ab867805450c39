// Secrets of people, which their workspaces find in their environment or in files. What they are is never returned.
import { t } from "elysia";
import { rfc3339 } from "#base/clock.ts";
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
  secret: t.String({ description: "Its name, letter case ignored." }),
});

const presentSecret = ({ id, name, description, env_name, file_path, ...row }: UserSecretRow): UserSecret => ({
  id,
  name,
  description,
  env_name,
  file_path,
  created_at: rfc3339(row.created_at),
  updated_at: rfc3339(row.updated_at),
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
          summary: "List one's secrets",
          description: "By name.",
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
          summary: "Keep a secret",
          description:
            "One's own workspaces that run are told: programs that begin from now on find it, and its file is written. It is sealed, and never returned.",
          example: { name: "registry", value: "a token of the registry", env_name: "REGISTRY_TOKEN" },
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
        summary: "Get one of one's secrets",
        description: "Without its value.",
        scope: "user_secret:read",
      }),
    })
    .patch(
      "/:user/secrets/:secret",
      async ({ caller, params, body }) =>
        presentSecret(await changeSecret(ctx, await findSecret(ctx, params, caller), body)),
      {
        user,
        params: path,
        body: UpdateUserSecret,
        response: { 200: UserSecret, ...fails(400, 401, 403, 404, 409, 413) },
        detail: operation({
          tags,
          operationId: "updateSecret",
          summary: "Change one of one's secrets",
          description: "What is left out stays. One's own workspaces that run are told, as when it was made.",
          audit: target.writes(target.secret),
          example: { value: "another token of the registry" },
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
          summary: "Delete one of one's secrets",
          description:
            "Workspaces that run are told: programs that run keep it, those that begin from now on do not find it, and files that hold it are removed unless somebody has changed them.",
          audit: target.deletes(target.secret),
          scope: "user_secret:delete",
        }),
      },
    );
