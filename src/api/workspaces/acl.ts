// Sharing of a workspace (facts/platform 3.4) with users and groups of its organization: read, change and revoke.
import { forbidden, invalid, type Validation } from "#base/errors.ts";
import { findMemberWithUser } from "#db/users/members.ts";
import { findSharingDisabled } from "#db/workspaces/sharing.ts";
import type { WorkspaceAccessRow } from "#db/workspaces/workspaces.ts";
import { canShareWorkspace } from "#domain/access.ts";
import { checkGroups, presentGroupRoles, type RoleChanges, readRoleChanges } from "#domain/groups/acl.ts";
import { getOrganization } from "#domain/organizations/find.ts";
import { findExistingWorkspace, workspacePath } from "#domain/workspaces/find.ts";
import { loadPeople } from "#domain/workspaces/shared-with.ts";
import { PatchWorkspaceAcl, WORKSPACE_ROLES, WorkspaceAcl, type WorkspaceRole } from "#schema/workspaces/acl.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers, type UserCaller } from "../http/caller.ts";
import { ANY_ID } from "../http/document/example-ids.ts";
import { operation } from "../http/operation.ts";
import { fails, NoContent } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["Workspaces"];
const user = true;
const params = workspacePath;

export const acl = (ctx: ApiContext) => {
  const findWorkspaceIfSharingEnabled = async (id: string, caller: UserCaller): Promise<WorkspaceAccessRow> => {
    const workspace = await findExistingWorkspace(ctx, id, caller);
    if (await ctx.store.get(findSharingDisabled({ organization_id: workspace.organization_id }))) {
      throw forbidden("Workspaces of this organization can't be shared.");
    }
    return workspace;
  };
  const findWorkspaceToShare = async (id: string, caller: UserCaller): Promise<WorkspaceAccessRow> => {
    const workspace = await findWorkspaceIfSharingEnabled(id, caller);
    if (!canShareWorkspace(caller, workspace)) throw forbidden("Only the owner of a workspace can share it.");
    return workspace;
  };
  return routes()
    .use(callers)
    .get(
      "/:workspace/acl",
      async ({ caller, params }) => presentAcl(ctx, await findWorkspaceIfSharingEnabled(params.workspace, caller)),
      {
        user,
        params,
        response: { 200: WorkspaceAcl, ...fails(400, 401, 403, 404, 410) },
        detail: operation({
          tags,
          operationId: "getWorkspaceAcl",
          summary: "Get a workspace's access list",
          access: "owner",
          scope: "workspace:read",
          placement: "workspace",
        }),
      },
    )
    .patch(
      "/:workspace/acl",
      async ({ caller, params, body, status }) => {
        const workspace = await findWorkspaceToShare(params.workspace, caller);
        const problems: Validation[] = [];
        const user_roles = readRoleChanges("user_roles", body.user_roles, WORKSPACE_ROLES, problems);
        const group_roles = readRoleChanges("group_roles", body.group_roles, WORKSPACE_ROLES, problems);
        await checkUsers(ctx, workspace, caller, user_roles, problems);
        await checkGroups(ctx.store, workspace.organization_id, "group_roles", group_roles, problems);
        if (problems.length > 0) throw invalid("Validation failed.", problems);
        await ctx.workspaces.ask(workspace.id, "edit", { type: "share", user_roles, group_roles, by: caller.username });
        ctx.topics.publish("notified", workspace.id, {});
        return status(204, undefined);
      },
      {
        user,
        params,
        body: PatchWorkspaceAcl,
        response: { 204: NoContent, ...fails(400, 401, 403, 404, 409, 410, 413, 503) },
        detail: operation({
          tags,
          operationId: "updateWorkspaceAcl",
          summary: "Update a workspace's access list",
          description:
            "Shares the workspace. The roles are `use` (see it and work in it) and `admin` (also start, stop and change it). An empty string removes the role. Users who gain access are notified; members of a group are not. Users who lose access are disconnected immediately. An AI gateway token that they copied from the workspace works until the workspace stops.",
          example: { group_roles: { [ANY_ID]: "use" } },
          audit: target.writes(target.workspace),
          access: "owner",
          scope: "workspace:share",
          changesAccess: "workspace:share",
          placement: "workspace",
        }),
      },
    )
    .delete(
      "/:workspace/acl",
      async ({ caller, params, status }) => {
        const workspace = await findWorkspaceToShare(params.workspace, caller);
        await ctx.workspaces.ask(workspace.id, "edit", { type: "unshare" });
        return status(204, undefined);
      },
      {
        user,
        params,
        response: { 204: NoContent, ...fails(400, 401, 403, 404, 410, 503) },
        detail: operation({
          tags,
          operationId: "deleteWorkspaceAcl",
          summary: "Delete a workspace's access list",
          audit: target.writes(target.workspace),
          access: "owner",
          scope: "workspace:share",
          changesAccess: "workspace:share",
          placement: "workspace",
        }),
      },
    );
};

const presentAcl = async ({ store }: ApiContext, workspace: WorkspaceAccessRow): Promise<WorkspaceAcl> => {
  const { user_acl, group_acl } = workspace;
  const users = await loadPeople(store, [user_acl]);
  const organization = await getOrganization(store, workspace.organization_id);
  return {
    users: [...users.values()].flatMap((user) => {
      const role = user_acl[user.id];
      return role ? [{ ...user, role }] : [];
    }),
    groups: await presentGroupRoles(store, organization, group_acl),
    user_roles: user_acl,
    group_roles: group_acl,
  };
};

const checkUsers = async (
  { store }: ApiContext,
  { organization_id, owner_id }: WorkspaceAccessRow,
  caller: UserCaller,
  changes: RoleChanges<WorkspaceRole>,
  problems: Validation[],
): Promise<void> => {
  for (const [user_id, role] of Object.entries(changes)) {
    const addProblem = (detail: string) => problems.push({ field: `user_roles.${user_id}`, detail });
    if (user_id === caller.user_id) addProblem("you cannot change your own role");
    else if (user_id === owner_id) addProblem("is the owner of the workspace");
    else if (role !== "" && !(await store.get(findMemberWithUser({ organization_id, user_id })))) {
      addProblem("is not a member of the workspace's organization");
    }
  }
};
