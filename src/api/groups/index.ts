// Groups by ID: read, update, delete, and members. Routes for the groups of an organization are in api/organizations/groups.ts.
import { t } from "elysia";
import { readMemberships } from "#db/users/members.ts";
import { listOrganizations } from "#db/users/organizations.ts";
import { canSeeGroups } from "#domain/access.ts";
import { changeGroup, removeGroup } from "#domain/groups/change.ts";
import { findGroupFor, groupPath, listGroups, loadMembersPage, presentGroup } from "#domain/groups/find.ts";
import { loadOrganization } from "#domain/organizations/find.ts";
import { loadAnyUser } from "#domain/users/find.ts";
import { Generic } from "#schema/generic.ts";
import { Group, GroupMembers, PatchGroup } from "#schema/users/group.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers, type UserCaller } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { pageQuery, toPage } from "../http/paging.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["Groups"];
const user = true;
const params = groupPath;

const listQuery = t.Object({
  organization: t.Optional(t.String({ description: "Return only groups of this organization: its ID or name." })),
  has_member: t.Optional(t.String({ description: "Return only groups with this member: an ID, a username or `me`." })),
  group_ids: t.Optional(t.String({ maxLength: 4_000, description: "Return only these groups: comma-separated IDs." })),
});

export const groups = (ctx: ApiContext) =>
  routes({ prefix: "/groups" })
    .use(callers)
    .get("", ({ caller, query }) => listVisibleGroups(ctx, caller, query), {
      user,
      query: listQuery,
      response: { 200: t.Array(Group), ...fails(400, 401, 404) },
      detail: operation({
        tags,
        operationId: "listGroups",
        summary: "List groups",
        description: "Returns the groups of organizations that the caller can see.",
        access: "users",
        scope: "group:read",
      }),
    })
    .get(
      "/:group",
      async ({ caller, params }) =>
        presentGroup(ctx.store, await findGroupFor(ctx.store, params.group, caller), caller),
      {
        user,
        params,
        response: { 200: Group, ...fails(400, 401, 404) },
        detail: operation({
          tags,
          operationId: "getGroup",
          summary: "Get a group",
          access: "members",
          scope: "group:read",
        }),
      },
    )
    .get(
      "/:group/members",
      async ({ caller, params, query }) => {
        const { group } = await findGroupFor(ctx.store, params.group, caller);
        return loadMembersPage(ctx.store, group, caller, toPage(query));
      },
      {
        user,
        params,
        query: t.Object({ limit: pageQuery.limit, offset: pageQuery.offset }),
        response: { 200: GroupMembers, ...fails(400, 401, 404) },
        detail: operation({
          tags,
          operationId: "listGroupMembers",
          summary: "List group members",
          access: "members",
          scope: "group:read",
        }),
      },
    )
    .patch(
      "/:group",
      async ({ caller, params, body }) => {
        const found = await findGroupFor(ctx.store, params.group, caller);
        return presentGroup(ctx.store, await changeGroup(ctx, found, caller, body), caller);
      },
      {
        user,
        params,
        body: PatchGroup,
        response: { 200: Group, ...fails(400, 401, 403, 404, 409) },
        detail: operation({
          tags,
          operationId: "updateGroup",
          summary: "Update a group",
          description: "Omitted fields are unchanged. Membership changes take effect immediately.",
          example: { display_name: "Front end", add_users: ["ada"] },
          audit: target.writes(target.group),
          access: "organization_admins",
          scope: "group:update",
          changesAccess: "group:update",
        }),
      },
    )
    .delete(
      "/:group",
      async ({ caller, params }) => {
        await removeGroup(ctx, await findGroupFor(ctx.store, params.group, caller), caller);
        return { message: "The group has been deleted." };
      },
      {
        user,
        params,
        response: { 200: Generic, ...fails(400, 401, 403, 404) },
        detail: operation({
          tags,
          operationId: "deleteGroup",
          summary: "Delete a group",
          description: "Deletes the group. Its members lose access to resources that were shared with it.",
          audit: target.deletes(target.group),
          access: "organization_admins",
          scope: "group:delete",
          changesAccess: "group:delete",
        }),
      },
    );

const listVisibleGroups = async (
  { store }: ApiContext,
  caller: UserCaller,
  { organization, has_member, group_ids }: typeof listQuery.static,
): Promise<Group[]> => {
  const organizations = organization
    ? [await loadOrganization(store, organization, caller)]
    : (await store.all(listOrganizations())).filter(({ id }) => canSeeGroups(caller, id));
  const requestedIds = group_ids === undefined ? undefined : new Set(group_ids.toLowerCase().split(","));
  const memberId = has_member ? (await loadAnyUser(store, has_member, caller)).id : undefined;
  const memberGroups = memberId === undefined ? undefined : new Set((await readMemberships(store, memberId)).groups);
  const presentedGroups: Group[] = [];
  for (const current of organizations) {
    for (const group of await listGroups(store, current)) {
      if (requestedIds && !requestedIds.has(group.id)) continue;
      if (memberGroups && !memberGroups.has(group.id)) continue;
      presentedGroups.push(await presentGroup(store, { group, organization: current }, caller));
    }
  }
  return presentedGroups;
};
