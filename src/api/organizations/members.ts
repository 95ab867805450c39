// Members of an organization and their roles (facts/platform 9.3 and 3.8).
import { t } from "elysia";
import { canGiveOrganizationRoles } from "#domain/access.ts";
import { loadOrganization, organizationPath } from "#domain/organizations/find.ts";
import {
  addMember,
  findMember,
  listVisibleMembers,
  removeMember,
  setMemberRoles,
} from "#domain/organizations/members.ts";
import { userPath } from "#domain/users/find.ts";
import { AssignableRole, listAssignable, ORGANIZATION_ROLES } from "#domain/users/site-roles.ts";
import { Member } from "#schema/users/member.ts";
import { UpdateRolesRequest } from "#schema/users/user.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { pageQuery, toPage } from "../http/paging.ts";
import { fails, NoContent } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["Members"];
const user = true;
export const memberPath = t.Object({
  organization: organizationPath.properties.organization,
  user: userPath.properties.user,
});

export const members = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/:organization/members",
      async ({ caller, params }) => {
        const { id } = await loadOrganization(ctx.store, params.organization, caller);
        return (await listVisibleMembers(ctx, id, caller, toPage({}))).members;
      },
      {
        user,
        params: organizationPath,
        response: { 200: t.Array(Member), ...fails(401, 404) },
        detail: operation({
          tags,
          operationId: "listMembers",
          summary: "List members of an organization",
          description: "Returns the members that the caller can see, sorted by username.",
          access: "members",
          scope: "organization_member:read",
        }),
      },
    )
    .get(
      "/:organization/paginated-members",
      async ({ caller, params, query }) => {
        const { id } = await loadOrganization(ctx.store, params.organization, caller);
        return listVisibleMembers(ctx, id, caller, toPage(query));
      },
      {
        user,
        params: organizationPath,
        query: t.Object({ limit: pageQuery.limit, offset: pageQuery.offset }),
        response: { 200: t.Object({ members: t.Array(Member), count: t.Integer() }), ...fails(400, 401, 404) },
        detail: operation({
          tags,
          operationId: "listMembersPaginated",
          summary: "List members of an organization in pages",
          access: "members",
          scope: "organization_member:read",
        }),
      },
    )
    .get(
      "/:organization/members/roles",
      async ({ caller, params }) => {
        const { id } = await loadOrganization(ctx.store, params.organization, caller);
        return listAssignable(ORGANIZATION_ROLES, canGiveOrganizationRoles(caller, id), id);
      },
      {
        user,
        params: organizationPath,
        response: { 200: t.Array(AssignableRole), ...fails(401, 404) },
        detail: operation({
          tags,
          operationId: "listMemberRoles",
          summary: "List member roles",
          access: "members",
          scope: "organization_member:read",
        }),
      },
    )
    .get(
      "/:organization/members/:user",
      async ({ caller, params }) => {
        const { id } = await loadOrganization(ctx.store, params.organization, caller);
        return findMember(ctx, id, params.user, caller);
      },
      {
        user,
        params: memberPath,
        response: { 200: Member, ...fails(401, 404) },
        detail: operation({
          tags,
          operationId: "getMember",
          summary: "Get a member of an organization",
          access: "owner",
          scope: "organization_member:read",
        }),
      },
    )
    .post(
      "/:organization/members/:user",
      async ({ caller, params }) => {
        const { id } = await loadOrganization(ctx.store, params.organization, caller);
        return addMember(ctx, id, params.user, caller);
      },
      {
        user,
        params: memberPath,
        response: { 200: Member, ...fails(401, 403, 404, 409) },
        detail: operation({
          tags,
          operationId: "addMember",
          summary: "Add a member to an organization",
          audit: target.creates(target.newMember),
          access: "organization_admins",
          scope: "organization_member:create",
          changesAccess: "organization_member:create",
        }),
      },
    )
    .delete(
      "/:organization/members/:user",
      async ({ caller, params, status }) => {
        const { id } = await loadOrganization(ctx.store, params.organization, caller);
        await removeMember(ctx, id, params.user, caller);
        return status(204, undefined);
      },
      {
        user,
        params: memberPath,
        response: { 204: NoContent, ...fails(400, 401, 403, 404) },
        detail: operation({
          tags,
          operationId: "removeMember",
          summary: "Remove a member from an organization",
          description: "The member's workspaces are kept. Users can leave any organization except their only one.",
          audit: target.deletes(target.member),
          access: "user_admins",
          scope: "organization_member:delete",
          changesAccess: "organization_member:delete",
        }),
      },
    )
    .put(
      "/:organization/members/:user/roles",
      async ({ caller, params, body }) => {
        const { id } = await loadOrganization(ctx.store, params.organization, caller);
        return setMemberRoles(ctx, { organization_id: id, user: params.user }, caller, body.roles);
      },
      {
        user,
        params: memberPath,
        body: UpdateRolesRequest,
        response: { 200: Member, ...fails(400, 401, 403, 404, 409, 415) },
        detail: operation({
          tags,
          operationId: "setMemberRoles",
          summary: "Update a member's roles",
          description: "Replaces all of the member's roles in the organization.",
          audit: target.writes(target.member),
          example: { roles: ["organization-auditor"] },
          access: "user_admins",
          scope: "all",
        }),
      },
    );
