// Members of an organization, and what they may do there (facts/platform 9.3 and 3.8).
import { Elysia, t } from "elysia";
import { rfc3339, rfc3339OrAbsent } from "#base/clock.ts";
import { conflict, forbidden, invalid, notFound } from "#base/errors.ts";
import { CommitError, type Store } from "#db/engine/store.ts";
import { audited } from "#db/reports/audit/audit.ts";
import {
  countMembers,
  deleteMember,
  findMemberWithUser,
  insertMember,
  listMembers,
  type Member as MemberRow,
  updateMember,
} from "#db/users/members.ts";
import type { User as UserRow } from "#db/users/users.ts";
import { mayGiveOrganizationRoles, mayManageMembers, mayReadMembers } from "#domain/access.ts";
import { organizationAt, organizationPath } from "#domain/organizations/find.ts";
import { AssignableRole, assignable, ORGANIZATION_ROLES, organizationRoles } from "#domain/users/site-roles.ts";
import { anyUserAt, showRole, userPath } from "#domain/users/user.ts";
import { Member } from "#schema/member.ts";
import type { Page } from "#schema/page.ts";
import { UpdateRolesRequest } from "#schema/user.ts";
import type { ApiContext } from "../context.ts";
import { callers, type UserCaller } from "../http/caller.ts";
import { pageOf, pageQuery } from "../http/paging.ts";
import { fails, NoContent } from "../http/responses.ts";

const tags = ["Members"];
const user = true;
const memberPath = t.Object({ organization: organizationPath.properties.organization, user: userPath.properties.user });

const showMember = (member: MemberRow, of: UserRow): Member => ({
  user_id: of.id,
  organization_id: member.organization_id,
  username: of.username,
  name: of.name,
  email: of.email,
  avatar_url: of.avatar_url,
  status: of.status,
  login_type: of.login_type,
  last_seen_at: rfc3339OrAbsent(of.last_seen_at),
  roles: member.roles.map((role) => showRole(role, member.organization_id)),
  global_roles: of.roles.map((role) => showRole(role)),
  created_at: rfc3339(member.created_at),
  updated_at: rfc3339(member.updated_at),
});

type Pair = { organization_id: string; user_id: string };

const told = (
  { organization_id, user_id }: Pair,
  target: string,
  action: "create" | "write" | "delete",
  change: { before?: object; after?: object },
  now: number,
) =>
  audited({
    now,
    action,
    resource_type: "organization_member",
    resource_id: user_id,
    organization_id,
    target,
    ...change,
  });

const memberOf = async (store: Store, pair: Pair): Promise<Member> => {
  const found = await store.get(findMemberWithUser(pair));
  if (!found) throw notFound();
  return showMember(found.member, found.user);
};

/** The page a caller may see: everybody for those who look after members, oneself for the others. */
const visibleMembers = async (ctx: ApiContext, organization: string, caller: UserCaller, page: Page) => {
  const organization_id = organization;
  if (!mayReadMembers(caller, organization)) {
    const own = await ctx.store.get(findMemberWithUser({ organization_id, user_id: caller.user_id }));
    const rows = own && page.offset === 0 ? [showMember(own.member, own.user)] : [];
    return { members: rows, count: own ? 1 : 0 };
  }
  const [rows, counted] = await Promise.all([
    ctx.store.scan(listMembers({ organization_id, ...page })),
    ctx.store.scan(countMembers({ organization_id })),
  ]);
  return { members: rows.map((row) => showMember(row.member, row.user)), count: counted[0]?.count ?? 0 };
};

type MayManage = (caller: UserCaller, organization: string) => boolean;

/** Another member, when the caller may do this to members: 404 when there is none to see, 400 for oneself. */
const managedAt = async (
  ctx: ApiContext,
  at: { organization_id: string; user: string },
  caller: UserCaller,
  may: MayManage,
): Promise<Pair> => {
  const { organization_id } = at;
  const found = await anyUserAt(ctx.store, at.user, caller);
  const pair = { organization_id, user_id: found.id };
  const isSelf = found.id === caller.user_id;
  if (!isSelf && !mayReadMembers(caller, organization_id)) throw notFound();
  await memberOf(ctx.store, pair);
  if (!may(caller, organization_id)) throw forbidden("You may not manage the members of this organization.");
  if (isSelf) throw invalid("You cannot do this to yourself.");
  return pair;
};

export const members = (ctx: ApiContext) =>
  new Elysia()
    .use(callers)
    .get(
      "/:organization/members",
      async ({ caller, params }) => {
        const { id } = await organizationAt(ctx.store, params.organization, caller);
        return (await visibleMembers(ctx, id, caller, pageOf({}))).members;
      },
      {
        ...{ user, params: organizationPath },
        response: { 200: t.Array(Member), ...fails(401, 404) },
        detail: { tags, summary: "List members", description: "Those the caller may see, by username." },
      },
    )
    .get(
      "/:organization/paginated-members",
      async ({ caller, params, query }) => {
        const { id } = await organizationAt(ctx.store, params.organization, caller);
        return visibleMembers(ctx, id, caller, pageOf(query));
      },
      {
        ...{ user, params: organizationPath },
        query: t.Object({ limit: pageQuery.limit, offset: pageQuery.offset }),
        response: { 200: t.Object({ members: t.Array(Member), count: t.Integer() }), ...fails(400, 401, 404) },
        detail: { tags, summary: "List members in pages" },
      },
    )
    .get(
      "/:organization/members/roles",
      async ({ caller, params }) => {
        const { id } = await organizationAt(ctx.store, params.organization, caller);
        return assignable(ORGANIZATION_ROLES, mayGiveOrganizationRoles(caller, id), id);
      },
      {
        ...{ user, params: organizationPath },
        response: { 200: t.Array(AssignableRole), ...fails(401, 404) },
        detail: { tags, summary: "List the roles of members" },
      },
    )
    .get(
      "/:organization/members/:user",
      async ({ caller, params }) => {
        const { id } = await organizationAt(ctx.store, params.organization, caller);
        const found = await anyUserAt(ctx.store, params.user, caller);
        if (found.id !== caller.user_id && !mayReadMembers(caller, id)) throw notFound();
        return memberOf(ctx.store, { organization_id: id, user_id: found.id });
      },
      {
        ...{ user, params: memberPath },
        response: { 200: Member, ...fails(401, 404) },
        detail: { tags, summary: "Get a member" },
      },
    )
    .post(
      "/:organization/members/:user",
      async ({ caller, params }) => {
        const { id } = await organizationAt(ctx.store, params.organization, caller);
        if (!mayManageMembers(caller, id)) throw forbidden("You may not add members to this organization.");
        const found = await anyUserAt(ctx.store, params.user, caller);
        const pair = { organization_id: id, user_id: found.id };
        const now = ctx.clock.now();
        await ctx.store
          .commit([
            insertMember({ ...pair, roles: [], created_at: now, updated_at: now }),
            told(pair, found.username, "create", { after: { ...pair, username: found.username } }, now),
          ])
          .catch((error) => {
            if (!(error instanceof CommitError) || error.reason !== "constraint") throw error;
            throw conflict("This user is a member already.");
          });
        return memberOf(ctx.store, pair);
      },
      {
        ...{ user, params: memberPath },
        response: { 200: Member, ...fails(401, 403, 404, 409) },
        detail: { tags, summary: "Add a member" },
      },
    )
    .delete(
      "/:organization/members/:user",
      async ({ caller, params, status }) => {
        const { id } = await organizationAt(ctx.store, params.organization, caller);
        const pair = await managedAt(ctx, { organization_id: id, user: params.user }, caller, mayManageMembers);
        const { username, roles } = await memberOf(ctx.store, pair);
        const before = { ...pair, username, roles: roles.map(({ name }) => name) };
        await ctx.store.commit([deleteMember(pair), told(pair, username, "delete", { before }, ctx.clock.now())]);
        ctx.topics.publish("access_changed", pair.user_id, {});
        return status(204, undefined);
      },
      {
        ...{ user, params: memberPath },
        response: { 204: NoContent, ...fails(400, 401, 403, 404) },
        detail: { tags, summary: "Remove a member", description: "Their workspaces stay." },
      },
    )
    .put(
      "/:organization/members/:user/roles",
      async ({ caller, params, body }) => {
        const { id } = await organizationAt(ctx.store, params.organization, caller);
        const pair = await managedAt(ctx, { organization_id: id, user: params.user }, caller, mayGiveOrganizationRoles);
        const now = ctx.clock.now();
        const roles = organizationRoles(body.roles);
        const known = await memberOf(ctx.store, pair);
        const change = { before: { roles: known.roles.map(({ name }) => name) }, after: { roles } };
        await ctx.store.commit([
          updateMember({ ...pair, roles, updated_at: now }),
          told(pair, known.username, "write", change, now),
        ]);
        ctx.topics.publish("access_changed", pair.user_id, {});
        return memberOf(ctx.store, pair);
      },
      {
        ...{ user, params: memberPath },
        body: UpdateRolesRequest,
        response: { 200: Member, ...fails(400, 401, 403, 404, 409, 415) },
        detail: { tags, summary: "Set a member's roles", description: "Replaces all of them." },
      },
    );
