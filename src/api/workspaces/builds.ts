// The builds of a workspace, and the timings of its latest one.
import { t } from "elysia";
import { AppError, notFound } from "#base/errors.ts";
import { findBuild, listBuildIds } from "#db/workspaces/builds.ts";
import { findBuildView, listBuildViews } from "#db/workspaces/views.ts";
import { createBuild, restartWorkspace } from "#domain/builds/create.ts";
import { presentBuilds } from "#domain/builds/present.ts";
import { loadTimings } from "#domain/builds/timings.ts";
import { requireFullAccess } from "#domain/factors/proof.ts";
import { loadWorkspace, workspaceGone } from "#domain/workspaces/find.ts";
import { hasScope } from "#schema/users/scopes.ts";
import { Build, BuildTimings, CreateBuild, RestartWorkspace } from "#schema/workspaces/build.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { answerList } from "../http/answers/large-list.ts";
import { callers, type UserCaller } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { pageQuery, toPage } from "../http/paging.ts";
import { flagQuery, parseFlag } from "../http/query.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { requireScope } from "../http/scope-gate.ts";

const tags = ["Builds"];
const path = t.Object({ workspace: t.String({ format: "uuid", description: "The ID of the workspace." }) });

/** Throws 403 for a key with scopes that changes the values of a workspace without the scope to run programs in it. */
const requireScopeForValues = (
  caller: UserCaller,
  { rich_parameter_values = [], template_version_preset_id }: RestartWorkspace,
): void => {
  if (rich_parameter_values.length === 0 && template_version_preset_id === undefined) return;
  requireScope(caller, "workspace:ssh");
};

export const workspaceBuilds = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .post(
      "/:workspace/builds",
      async ({ caller, params, body, status }) => {
        requireScope(caller, `workspace:${body.transition}`);
        requireScopeForValues(caller, body);
        if (body.state !== undefined) await requireFullAccess(ctx, caller, "replace the state of a build");
        return status(201, await createBuild(ctx, params.workspace, body, caller));
      },
      {
        user: true,
        params: path,
        body: CreateBuild,
        response: { 201: Build, ...fails(400, 401, 403, 404, 406, 409, 413, 503) },
        detail: operation({
          tags,
          operationId: "createBuild",
          summary: "Start, stop or delete a workspace",
          description:
            "Queues a build. Omitted parameters keep their values from the last build. A key with scopes also needs `workspace:ssh` to set values or choose a preset, because they determine what runs in the workspace. Applications and keys with scopes can't give a `state`.",
          example: { transition: "start" },
          audit: target.writes(target.newBuild, { needsBody: true }),
          access: "owner",
          scope: { oneOf: ["workspace:start", "workspace:stop", "workspace:delete"] },
          placement: "workspace",
        }),
      },
    )
    .post(
      "/:workspace/restart",
      async ({ caller, params, body, status }) => {
        requireScope(caller, "workspace:start");
        const isUpdate = body.template_version_id !== undefined && hasScope(caller.scopes, "workspace:update");
        if (!isUpdate) requireScope(caller, "workspace:stop");
        requireScopeForValues(caller, body);
        return status(201, await restartWorkspace(ctx, params.workspace, body, caller));
      },
      {
        user: true,
        params: path,
        body: RestartWorkspace,
        response: { 201: Build, ...fails(400, 401, 403, 404, 406, 409, 413, 503) },
        detail: operation({
          tags,
          operationId: "restartWorkspace",
          summary: "Restart or update a workspace",
          description:
            "Stops the workspace if it is running and starts it again, with the version and values in the body, if any. Both builds are queued together; the second starts only if the first succeeds. Returns the first build. A key with scopes needs `workspace:start` and `workspace:stop`; if the body names a version, `workspace:update` instead of `workspace:stop`. To set values or choose a preset, it also needs `workspace:ssh`.",
          audit: target.writes(target.restart),
          example: { rich_parameter_values: [] },
          access: "owner",
          scope: { oneOf: ["workspace:start", "workspace:stop", "workspace:update"] },
          placement: "workspace",
        }),
      },
    )
    .get(
      "/:workspace/builds",
      async ({ caller, params, query, request }) => {
        const workspace = await loadWorkspace(ctx, params.workspace, caller);
        const after = query.after_id && (await ctx.store.get(findBuild({ id: query.after_id.toLowerCase() })));
        if (query.after_id && (!after || after.workspace_id !== workspace.id)) {
          throw new AppError("invalid", "Query parameters have invalid values.", {
            validations: [{ field: "after_id", detail: "is not a build of this workspace" }],
          });
        }
        const ids = await ctx.store.scan(
          listBuildIds({
            workspace_id: workspace.id,
            below: after ? after.build_number : Number.MAX_SAFE_INTEGER,
            since: query.since === undefined ? -1 : Date.parse(query.since),
            ...toPage(query),
          }),
        );
        const present = async (pageIds: readonly string[]): Promise<Map<string, string>> => {
          const build_ids = JSON.stringify(pageIds);
          const views = await ctx.store.scan(listBuildViews({ workspace_id: workspace.id, build_ids }));
          const builds = await presentBuilds(ctx, views, caller.compat, { all: (query) => ctx.store.scan(query) });
          return new Map(builds.map((build) => [build.id, JSON.stringify(build)]));
        };
        const list = { head: "[", ids: ids.map(({ id }) => id), tail: "]", present };
        return answerList(ctx, request, caller.user_id, list);
      },
      {
        user: true,
        params: path,
        query: t.Object({
          ...pageQuery,
          since: t.Optional(
            t.String({ format: "date-time", description: "Return only builds created after this time." }),
          ),
        }),
        response: { 200: t.Array(Build), ...fails(400, 401, 404, 503) },
        detail: operation({
          tags,
          operationId: "listBuilds",
          summary: "List builds of a workspace",
          description: "Returns builds, newest first.",
          access: "owner",
          scope: "workspace:read",
          placement: "workspace",
        }),
      },
    )
    .get(
      "/:workspace/timings",
      async ({ caller, params, query }) => {
        const workspace = await loadWorkspace(ctx, params.workspace, caller);
        if (workspace.deleted && !parseFlag(query.include_deleted)) throw workspaceGone();
        const view = await ctx.store.get(findBuildView({ id: workspace.latest_build_id }));
        if (!view) throw notFound();
        return loadTimings(ctx.store, view);
      },
      {
        user: true,
        params: path,
        query: t.Object({ include_deleted: flagQuery("Return deleted workspaces instead of 410.") }),
        response: { 200: BuildTimings, ...fails(400, 401, 404, 410) },
        detail: operation({
          tags,
          operationId: "getWorkspaceTimings",
          summary: "Get the timings of a workspace's latest build",
          description:
            "Includes the newest run of each script. For a stop or delete build, the stop scripts of its agents.",
          access: "owner",
          scope: "workspace:read",
          placement: "workspace",
        }),
      },
    );
