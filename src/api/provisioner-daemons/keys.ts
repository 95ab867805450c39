// Creates, lists and deletes worker keys, for organization administrators.
import { t } from "elysia";
import { listProvisionerKeys } from "#db/templates/provisioners.ts";
import { organizationPath } from "#domain/organizations/find.ts";
import {
  createProvisionerKey,
  findKey,
  findKeysOrganization,
  removeProvisionerKey,
} from "#domain/provisioners/keys.ts";
import { listKeyDaemons, presentKey } from "#domain/provisioners/present.ts";
import {
  CreateProvisionerKeyRequest,
  NewProvisionerKey,
  ProvisionerKey,
  ProvisionerKeyDaemons,
} from "#schema/templates/provisioner.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, NoContent } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["Provisioners"];
const user = true;
const params = organizationPath;
const { organization } = params.properties;
const keyPath = t.Object({ organization, key: t.String({ maxLength: 64, description: "The name of the key." }) });

export const provisionerKeys = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .post(
      "/:organization/provisionerkeys",
      async ({ caller, params, body, status }) => {
        const organization_id = await findKeysOrganization(ctx, params.organization, caller);
        const { name, tags = {} } = body;
        return status(201, await createProvisionerKey(ctx, caller, { organization_id, name, tags }));
      },
      {
        user,
        params,
        body: CreateProvisionerKeyRequest,
        response: { 201: NewProvisionerKey, ...fails(400, 401, 403, 404, 409, 415) },
        detail: operation({
          tags,
          operationId: "createProvisionerKey",
          summary: "Create a provisioner key",
          description:
            "Returns the key, only once. Every worker with this key has its tags, and if there are any, no others. The key ends when its creator can no longer create it.",
          example: { name: "builders", tags: {} },
          access: "organization_admins",
          scope: "provisioner_key:create",
        }),
      },
    )
    .get(
      "/:organization/provisionerkeys",
      async ({ caller, params }) => {
        const organization_id = await findKeysOrganization(ctx, params.organization, caller);
        const rows = await ctx.store.all(listProvisionerKeys({ organization_id }));
        return Promise.all(rows.map((row) => presentKey(ctx, row)));
      },
      {
        user,
        params,
        response: { 200: t.Array(ProvisionerKey), ...fails(401, 403, 404) },
        detail: operation({
          tags,
          operationId: "listProvisionerKeys",
          summary: "List provisioner keys",
          description: "Returns keys without their secrets, oldest first.",
          access: "organization_admins",
          scope: "provisioner_key:read",
        }),
      },
    )
    .get(
      "/:organization/provisionerkeys/daemons",
      async ({ caller, params }) => {
        const organization_id = await findKeysOrganization(ctx, params.organization, caller);
        return listKeyDaemons(ctx, organization_id, caller);
      },
      {
        user,
        params,
        response: { 200: t.Array(ProvisionerKeyDaemons), ...fails(401, 403, 404) },
        detail: operation({
          tags,
          operationId: "listProvisionerKeyDaemons",
          summary: "List provisioner keys with their workers",
          description: "Returns keys, oldest first, each with its workers, most recently seen first.",
          access: "organization_admins",
          scope: "provisioner_key:read",
        }),
      },
    )
    .get(
      "/:organization/provisionerkeys/:key",
      async ({ caller, params }) => {
        const organization_id = await findKeysOrganization(ctx, params.organization, caller);
        return presentKey(ctx, await findKey(ctx, { organization_id, name: params.key }));
      },
      {
        user,
        params: keyPath,
        response: { 200: ProvisionerKey, ...fails(401, 403, 404) },
        detail: operation({
          tags,
          operationId: "getProvisionerKey",
          summary: "Get a provisioner key",
          description: "Returns the key without its secret. A key named `daemons` can only be read in the list.",
          access: "organization_admins",
          scope: "provisioner_key:read",
        }),
      },
    )
    .delete(
      "/:organization/provisionerkeys/:key",
      async ({ caller, params, status }) => {
        const organization_id = await findKeysOrganization(ctx, params.organization, caller);
        await removeProvisionerKey(ctx, { organization_id, name: params.key });
        return status(204, undefined);
      },
      {
        user,
        params: keyPath,
        response: { 204: NoContent, ...fails(401, 403, 404) },
        detail: operation({
          tags,
          operationId: "deleteProvisionerKey",
          summary: "Delete a provisioner key",
          description:
            "Takes effect immediately: workers that use the key are disconnected, and their jobs are reassigned.",
          audit: target.deletes(target.provisionerKey),
          access: "organization_admins",
          scope: "provisioner_key:delete",
          changesAccess: "never",
        }),
      },
    );
