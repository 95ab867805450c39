// Users' deploy keys: the public keys, and where to add them.
import { t } from "elysia";
import { listDeployKeys } from "#db/users/deploy-keys.ts";
import { findSelf } from "#domain/users/appearance.ts";
import { createDeployKey, getDeployKey, presentDeployKey, revokeDeployKey } from "#domain/users/deploy-keys.ts";
import { userPath } from "#domain/users/find.ts";
import { CreateDeployKey, DeployKey } from "#schema/users/deploy-key.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, NoContent } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["Users"];
const user = true;
const params = t.Object({
  user: userPath.properties.user,
  deploy_key: t.String({ format: "uuid", description: "The ID of the deploy key." }),
});

export const deployKeys = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/:user/deploy-keys",
      async ({ caller, params }) => {
        const { id: user_id } = await findSelf(ctx, params.user, caller);
        return (await ctx.store.all(listDeployKeys({ user_id }))).map((row) => presentDeployKey(ctx, row));
      },
      {
        user,
        params: userPath,
        response: { 200: t.Array(DeployKey), ...fails(401, 403, 404) },
        detail: operation({
          tags,
          operationId: "listDeployKeys",
          summary: "List your deploy keys",
          description: "Returns deploy keys, sorted by repository. Private keys are never returned.",
          access: "owner_only",
          scope: "user:read_personal",
        }),
      },
    )
    .post(
      "/:user/deploy-keys",
      async ({ caller, params, body, status }) => {
        const { id: user_id } = await findSelf(ctx, params.user, caller);
        return status(201, presentDeployKey(ctx, await createDeployKey(ctx, user_id, body.url)));
      },
      {
        user,
        params: userPath,
        body: CreateDeployKey,
        response: { 201: DeployKey, ...fails(400, 401, 403, 404, 409) },
        detail: operation({
          tags,
          operationId: "createDeployKey",
          summary: "Create a deploy key",
          description:
            "Creates an Ed25519 key pair for one repository. Add the public key to the repository at its host; the server and your workspaces can then reach the repository over SSH.",
          example: { url: "https://github.com/acme/app" },
          access: "owner_only",
          scope: "user:update_personal",
          outlivesGrant: true,
        }),
      },
    )
    .delete(
      "/:user/deploy-keys/:deploy_key",
      async ({ caller, params, set }) => {
        await revokeDeployKey(ctx, await getDeployKey(ctx, params, caller));
        set.status = 204;
      },
      {
        user,
        params,
        response: { 204: NoContent, ...fails(401, 403, 404) },
        detail: operation({
          tags,
          operationId: "deleteDeployKey",
          summary: "Revoke a deploy key",
          description: "Workspaces no longer get the key. Also remove the public key from the repository's settings.",
          audit: target.deletes(target.deployKey),
          access: "owner_only",
          scope: "user:update_personal",
          outlivesGrant: true,
        }),
      },
    );
