// Organizations: who owns templates and workspaces together.
import { Elysia, t } from "elysia";
import { conflict, forbidden, invalid, invalidField } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import { CommitError } from "#db/engine/store.ts";
import { audited } from "#db/reports/audit/audit.ts";
import { deleteMembersOf } from "#db/users/members.ts";
import {
  deleteOrganization,
  insertOrganization,
  listOrganizations,
  type OrganizationRow,
  updateOrganization,
} from "#db/users/organizations.ts";
import { mayCreateOrganizations, maySeeOrganization, mayUpdateOrganization } from "#domain/access.ts";
import { getOrganization, organizationAt, organizationPath, showOrganization } from "#domain/organizations/find.ts";
import { takenOr } from "#domain/users/taken.ts";
import { CreateOrganizationRequest, Organization, UpdateOrganizationRequest } from "#schema/organization.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { fails, Generic } from "../http/responses.ts";
import { members } from "./members.ts";
import { sharing } from "./sharing.ts";

const tags = ["Organizations"];
const params = organizationPath;
const NAMES = { organizations_name: "name" };

/** `default` in a path always means the default organization, so no other may be called that. */
const checkName = (name: string | undefined, isDefault: boolean): void => {
  if (name?.toLowerCase() === "default" && !isDefault) throw invalidField("name", "This name is reserved.");
};

const told = (
  { id, name, icon }: OrganizationRow,
  action: "create" | "write" | "delete",
  change: { before?: OrganizationRow; after?: OrganizationRow },
  now: number,
) =>
  audited({
    now,
    action,
    resource_type: "organization",
    resource_id: id,
    organization_id: id,
    target: name,
    icon,
    ...change,
  });

export const organizations = (ctx: ApiContext) =>
  new Elysia({ prefix: "/organizations" })
    .use(callers)
    .use(members(ctx))
    .use(sharing(ctx))
    .get(
      "",
      async ({ caller }) => {
        const rows = await ctx.store.all(listOrganizations());
        return rows.filter((row) => maySeeOrganization(caller, row.id)).map(showOrganization);
      },
      {
        user: true,
        response: { 200: t.Array(Organization), ...fails(401) },
        detail: { tags, summary: "List organizations", description: "Those the caller may see, by name." },
      },
    )
    .post(
      "",
      async ({ caller, body, status }) => {
        if (!mayCreateOrganizations(caller)) throw forbidden("Only an owner may create organizations.");
        checkName(body.name, false);
        const now = ctx.clock.now();
        const row: OrganizationRow = {
          id: uuid(),
          name: body.name,
          display_name: body.display_name?.trim() || body.name,
          description: body.description ?? "",
          icon: body.icon ?? "",
          is_default: false,
          created_at: now,
          updated_at: now,
          deleted: false,
        };
        await ctx.store
          .commit([insertOrganization(row), told(row, "create", { after: row }, now)])
          .catch((error) => Promise.reject(takenOr(error, NAMES)));
        return status(201, showOrganization(row));
      },
      {
        user: true,
        body: CreateOrganizationRequest,
        response: { 201: Organization, ...fails(400, 401, 403, 409, 415) },
        detail: { tags, summary: "Create an organization" },
      },
    )
    .get(
      "/:organization",
      async ({ caller, params }) => showOrganization(await organizationAt(ctx.store, params.organization, caller)),
      {
        ...{ user: true, params },
        response: { 200: Organization, ...fails(401, 404) },
        detail: { tags, summary: "Get an organization" },
      },
    )
    .patch(
      "/:organization",
      async ({ caller, params, body }) => {
        const row = await organizationAt(ctx.store, params.organization, caller);
        if (!mayUpdateOrganization(caller, row.id)) throw forbidden("You may not change this organization.");
        checkName(body.name, row.is_default);
        const name = body.name ?? row.name;
        const now = ctx.clock.now();
        const patch = {
          ...{ name, description: body.description ?? row.description, icon: body.icon ?? row.icon, updated_at: now },
          display_name: body.display_name === undefined ? row.display_name : body.display_name.trim() || name,
        };
        const entry = told(row, "write", { before: row, after: { ...row, ...patch } }, now);
        await ctx.store
          .commit([updateOrganization(row.id, patch), entry])
          .catch((error) => Promise.reject(takenOr(error, NAMES)));
        ctx.topics.publish("shown_changed", row.id, {});
        return showOrganization(await getOrganization(ctx.store, row.id));
      },
      {
        ...{ user: true, params },
        body: UpdateOrganizationRequest,
        response: { 200: Organization, ...fails(400, 401, 403, 404, 409, 415) },
        detail: { tags, summary: "Change an organization", description: "Fields that are left out stay." },
      },
    )
    .delete(
      "/:organization",
      async ({ caller, params }) => {
        const row = await organizationAt(ctx.store, params.organization, caller);
        if (!mayCreateOrganizations(caller)) throw forbidden("Only an owner may delete organizations.");
        if (row.is_default) throw invalid("The default organization cannot be deleted.");
        const now = ctx.clock.now();
        const entry = told(row, "delete", { before: row }, now);
        await ctx.store
          .commit([deleteOrganization({ id: row.id, now }), deleteMembersOf(row.id), entry])
          .catch((error) => {
            if (!(error instanceof CommitError) || error.reason !== "stale") throw error;
            throw conflict("The organization still has templates or workspaces. Delete those first.");
          });
        return { message: "The organization has been deleted." };
      },
      {
        ...{ user: true, params },
        response: { 200: Generic, ...fails(400, 401, 403, 404, 409) },
        detail: { tags, summary: "Delete an organization", description: "409 while it has templates or workspaces." },
      },
    );
