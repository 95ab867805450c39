// Workspaces by owner: create one (two paths, one behavior), and find one by name, with its builds by number.
import { t } from "elysia";
import { notFound } from "#base/errors.ts";
import { findBuildByNumber } from "#db/workspaces/builds.ts";
import { findBuildView } from "#db/workspaces/views.ts";
import { findWorkspaceByName } from "#db/workspaces/workspaces.ts";
import { presentBuilds } from "#domain/builds/present.ts";
import { loadOrganization } from "#domain/organizations/find.ts";
import { findUserInPath, loadAnyUser } from "#domain/users/find.ts";
import { createWorkspace } from "#domain/workspaces/create.ts";
import { loadWorkspace } from "#domain/workspaces/find.ts";
import { readWorkspace } from "#domain/workspaces/present.ts";
import { Build } from "#schema/workspaces/build.ts";
import { CreateWorkspace, Workspace } from "#schema/workspaces/workspace.ts";
import type { ApiContext } from "../context.ts";
import { callers, type UserCaller } from "../http/caller.ts";
import { ANY_ID } from "../http/document/example-ids.ts";
import { operation } from "../http/operation.ts";
import { flagQuery, parseFlag } from "../http/query.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { availableUsers } from "./available-users.ts";

const tags = ["Workspaces"];
const user = t.String({ description: "The user's ID, username or `me`." });
const namedParams = t.Object({
  user,
  workspacename: t.String({ description: "The name of the workspace, case-insensitive." }),
});
const createRouteOptions = {
  user: true,
  body: CreateWorkspace,
  response: { 200: Workspace, 201: Workspace, ...fails(400, 401, 403, 404, 409, 413, 503) },
} as const;
const description =
  "Set either `template_id` (its active version is used; `GET /api/v2/templates` returns the IDs) or `template_version_id`. The first build is queued immediately. Clients that sign in under the upstream names get 201 instead of 200.";

/** Returns the ID of the owner's workspace with this name. Rejects with 404 if the caller can't see it. */
export const findWorkspaceId = async (
  ctx: ApiContext,
  caller: UserCaller,
  { owner, name, includeDeleted }: { owner: string; name: string; includeDeleted: boolean },
): Promise<string> => {
  const { id: owner_id } = await loadAnyUser(ctx.store, owner, caller);
  const workspace = await ctx.store.get(findWorkspaceByName({ owner_id, name }));
  if (!workspace || (workspace.deleted && !includeDeleted)) throw notFound();
  return (await loadWorkspace(ctx, workspace.id, caller)).id;
};

/** Routes under /users and /organizations that concern workspaces. */
export const workspacesByOwner = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .use(availableUsers(ctx))
    .post(
      "/users/:user/workspaces",
      async ({ caller, params, body, status }) => {
        const owner = await findUserInPath(ctx.store, params.user, caller);
        return status(caller.compat ? 201 : 200, await createWorkspace(ctx, { caller, owner, body }));
      },
      {
        ...createRouteOptions,
        params: t.Object({ user }),
        detail: operation({
          tags,
          operationId: "createWorkspace",
          summary: "Create a workspace",
          description,
          example: { name: "first", template_id: ANY_ID, rich_parameter_values: [] },
          access: "owner",
          scope: ["workspace:create", "template:use"],
          placement: "owner",
        }),
      },
    )
    .post(
      "/organizations/:organization/members/:user/workspaces",
      async ({ caller, params, body, status }) => {
        const { id: organization_id } = await loadOrganization(ctx.store, params.organization, caller);
        const owner = await findUserInPath(ctx.store, params.user, caller);
        const workspace = await createWorkspace(ctx, { caller, owner, organization_id, body });
        return status(caller.compat ? 201 : 200, workspace);
      },
      {
        ...createRouteOptions,
        params: t.Object({ organization: t.String({ description: "The organization's ID or name." }), user }),
        detail: operation({
          tags,
          operationId: "createOrganizationWorkspace",
          summary: "Create a workspace in an organization",
          description,
          example: { name: "first", template_id: ANY_ID, rich_parameter_values: [] },
          access: "owner",
          scope: ["workspace:create", "template:use"],
          placement: "owner",
        }),
      },
    )
    .get(
      "/users/:user/workspace/:workspacename",
      async ({ caller, params, query }) => {
        const { user: owner, workspacename: name } = params;
        const id = await findWorkspaceId(ctx, caller, {
          owner,
          name,
          includeDeleted: parseFlag(query.include_deleted),
        });
        const workspace = await readWorkspace(ctx, id, caller);
        if (!workspace) throw notFound();
        return workspace;
      },
      {
        user: true,
        params: namedParams,
        query: t.Object({ include_deleted: flagQuery("Return deleted workspaces instead of 404.") }),
        response: { 200: Workspace, ...fails(400, 401, 404) },
        detail: operation({
          tags,
          operationId: "getWorkspaceByName",
          summary: "Get a workspace by owner and name",
          access: "owner",
          scope: "workspace:read",
          placement: "named_workspace",
        }),
      },
    )
    .get(
      "/users/:user/workspace/:workspacename/builds/:buildnumber",
      async ({ caller, params }) => {
        const { user: owner, workspacename: name } = params;
        const workspace_id = await findWorkspaceId(ctx, caller, { owner, name, includeDeleted: true });
        const row = await ctx.store.get(findBuildByNumber({ workspace_id, build_number: params.buildnumber }));
        const view = row && (await ctx.store.get(findBuildView({ id: row.id })));
        const [build] = view ? await presentBuilds(ctx, [view], caller.compat) : [];
        if (!build) throw notFound();
        return build;
      },
      {
        user: true,
        params: t.Object({
          ...namedParams.properties,
          buildnumber: t.Integer({
            minimum: 1,
            maximum: 2_147_483_647,
            description: "The number of the build; the first is 1.",
          }),
        }),
        response: { 200: Build, ...fails(400, 401, 404) },
        detail: operation({
          tags: ["Builds"],
          operationId: "getBuildByNumber",
          summary: "Get a build by number",
          access: "owner",
          scope: "workspace:read",
          placement: "named_workspace",
        }),
      },
    );
