// Making, listing and removing the keys of workers. For those who look after the organization.
import { Elysia, t } from "elysia";
import { rfc3339 } from "#base/clock.ts";
import { forbidden, notFound } from "#base/errors.ts";
import { audited } from "#db/reports/audit/audit.ts";
import {
  deleteProvisionerKey,
  findProvisionerKeyByName,
  insertProvisionerKey,
  listProvisionerKeys,
  type ProvisionerKeyRow,
} from "#db/templates/provisioners.ts";
import { mayUpdateOrganization } from "#domain/access.ts";
import { organizationAt, organizationPath } from "#domain/organizations/find.ts";
import { takenOr } from "#domain/users/taken.ts";
import { CreateProvisionerKeyRequest, NewProvisionerKey, ProvisionerKey } from "#schema/provisioner.ts";
import type { ApiContext } from "../context.ts";
import { callers, type UserCaller } from "../http/caller.ts";
import { fails, NoContent } from "../http/responses.ts";
import { freshKey } from "./key.ts";

const tags = ["Provisioners"];
const user = true;
const params = organizationPath;
const { organization } = params.properties;
const keyPath = t.Object({ organization, key: t.String({ maxLength: 64, description: "Name of the key." }) });

const showKey = ({ id, organization_id, name, tags, created_at }: ProvisionerKeyRow): ProvisionerKey => ({
  ...{ id, organization_id, name, tags, created_at: rfc3339(created_at) },
});

/** The organization whose keys the caller may handle: 404 when it is not visible, 403 when it is. */
const managedAt = async (ctx: ApiContext, text: string, caller: UserCaller): Promise<string> => {
  const { id } = await organizationAt(ctx.store, text, caller);
  if (!mayUpdateOrganization(caller, id))
    throw forbidden("Only those who look after the organization handle its keys.");
  return id;
};

const told = (
  { id, name, organization_id }: ProvisionerKeyRow,
  action: "create" | "delete",
  change: { before?: ProvisionerKeyRow; after?: ProvisionerKeyRow },
  now: number,
) =>
  audited({ now, action, resource_type: "provisioner_key", resource_id: id, target: name, organization_id, ...change });

export const provisionerKeys = (ctx: ApiContext) =>
  new Elysia()
    .use(callers)
    .post(
      "/:organization/provisionerkeys",
      async ({ caller, params, body, status }) => {
        const organization_id = await managedAt(ctx, params.organization, caller);
        const { id, key, prefix, secret_hash } = freshKey();
        const { name, tags = {} } = body;
        const created_at = ctx.clock.now();
        const row = { id, prefix, organization_id, name, secret_hash, tags, created_by: caller.user_id, created_at };
        await ctx.store
          .commit([insertProvisionerKey(row), told(row, "create", { after: row }, created_at)])
          .catch((error) => Promise.reject(takenOr(error, { provisioner_keys_name: "name" })));
        return status(201, { id, name, key });
      },
      {
        ...{ user, params },
        body: CreateProvisionerKeyRequest,
        response: { 201: NewProvisionerKey, ...fails(400, 401, 403, 404, 409, 415) },
        detail: {
          tags,
          summary: "Create a provisioner key",
          description: "The answer is the only place where it is ever shown. Every worker with this key has its tags.",
        },
      },
    )
    .get(
      "/:organization/provisionerkeys",
      async ({ caller, params }) => {
        const organization_id = await managedAt(ctx, params.organization, caller);
        return (await ctx.store.all(listProvisionerKeys({ organization_id }))).map(showKey);
      },
      {
        ...{ user, params },
        response: { 200: t.Array(ProvisionerKey), ...fails(401, 403, 404) },
        detail: { tags, summary: "List provisioner keys", description: "Oldest first; without the keys themselves." },
      },
    )
    .delete(
      "/:organization/provisionerkeys/:key",
      async ({ caller, params, status }) => {
        const organization_id = await managedAt(ctx, params.organization, caller);
        const row = await ctx.store.get(findProvisionerKeyByName({ organization_id, name: params.key }));
        if (!row) throw notFound();
        await ctx.store.commit([deleteProvisionerKey(row.id), told(row, "delete", { before: row }, ctx.clock.now())]);
        ctx.workers.closeKey(row.id);
        return status(204, undefined);
      },
      {
        ...{ user, params: keyPath },
        response: { 204: NoContent, ...fails(401, 403, 404) },
        detail: {
          tags,
          summary: "Delete a provisioner key",
          description: "Counts at once: workers that came with it are disconnected, and their jobs go to others.",
        },
      },
    );
