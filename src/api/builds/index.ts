// Builds by ID: read, cancel, logs, parameters, resources, timings (facts/platform 9.4).
import { t } from "elysia";
import { AppError, forbidden, notFound } from "#base/errors.ts";
import { listBuildParameters } from "#db/workspaces/builds.ts";
import type { WorkspaceView } from "#db/workspaces/views.ts";
import { canStartStop, canUseWorkspace, isOwner } from "#domain/access.ts";
import { makeAgentView } from "#domain/agents/present.ts";
import { loadBuild } from "#domain/builds/find.ts";
import { presentBuilds } from "#domain/builds/present.ts";
import { loadResources } from "#domain/builds/resources.ts";
import { loadTimings } from "#domain/builds/timings.ts";
import { hidePlan } from "#schema/templates/repository.ts";
import { Build, BuildTimings, ParameterValue } from "#schema/workspaces/build.ts";
import { Resource } from "#schema/workspaces/resource.ts";
import { parseLogRequest } from "../agents/log-query.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers, type UserCaller } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, Generic } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { jobLogRoute, jobLogs } from "../jobs/logs.ts";
import { buildState } from "./state.ts";

const tags = ["Builds"];
const user = true;
const params = t.Object({ workspacebuild: t.String({ format: "uuid", description: "The ID of the build." }) });

export const builds = (ctx: ApiContext) =>
  routes({ prefix: "/workspacebuilds" })
    .use(callers)
    .get(
      "/:workspacebuild",
      async ({ caller, params }) => {
        const [build] = await presentBuilds(ctx, [await loadBuild(ctx, params.workspacebuild, caller)], caller.compat);
        if (!build) throw notFound();
        return build;
      },
      {
        user,
        params,
        response: { 200: Build, ...fails(400, 401, 404) },
        detail: operation({
          tags,
          operationId: "getBuild",
          summary: "Get a build",
          access: "owner",
          scope: "workspace:read",
          placement: "build",
        }),
      },
    )
    .patch(
      "/:workspacebuild/cancel",
      async ({ caller, params, query }) => {
        const view = await loadBuild(ctx, params.workspacebuild, caller);
        const expect_status = parseExpectedStatus(query.expect_status);
        checkCanCancel(view, caller, expect_status);
        await ctx.workspaces.ask(view.workspace.id, "cancelBuild", { build_id: view.build.id, expect_status });
        return { message: "The build is being cancelled." };
      },
      {
        user,
        params,
        query: t.Object({
          expect_status: t.Optional(
            t.String({
              description:
                "The expected status, `running` or `pending`. Returns 412 if the build has a different status.",
            }),
          ),
        }),
        response: { 200: Generic, ...fails(400, 401, 403, 404, 412, 503) },
        detail: operation({
          tags,
          operationId: "cancelBuild",
          summary: "Cancel a build",
          description: "Cancels a pending build immediately. A running build is asked to stop.",
          audit: target.writes(target.workspaceBuild),
          access: "owner",
          scope: "workspace:update",
          placement: "build",
        }),
      },
    )
    .get(
      "/:workspacebuild/logs",
      async ({ caller, params, query, request }) => {
        const requested = parseLogRequest(query);
        const { job, workspace } = await loadBuild(ctx, params.workspacebuild, caller);
        return jobLogs(ctx, request, job, requested, caller, workspace.id);
      },
      {
        params,
        ...jobLogRoute({
          tags,
          operationId: "listBuildLogs",
          summary: "List log lines of a build",
          access: "owner",
          scope: "workspace:read",
          placement: "build",
          moreDescription: " `format=text` returns plain text.",
        }),
      },
    )
    .get(
      "/:workspacebuild/parameters",
      async ({ caller, params }) => {
        const { build, workspace } = await loadBuild(ctx, params.workspacebuild, caller);
        const values = await ctx.store.all(listBuildParameters({ build_id: build.id }));
        const canReadPlans = canUseWorkspace(caller, workspace) && caller.scopes.includes("all");
        return canReadPlans ? values : values.map(({ name, value }) => ({ name, value: hidePlan(value) }));
      },
      {
        user,
        params,
        response: { 200: t.Array(ParameterValue), ...fails(400, 401, 404) },
        detail: operation({
          tags,
          operationId: "listBuildParameters",
          summary: "List parameter values of a build",
          description:
            "Callers who may not enter the workspace, applications and keys with scopes get the link of a repository instead of its plan, which may contain parts of a private repository.",
          access: "owner",
          scope: "workspace:read",
          placement: "build",
        }),
      },
    )
    .get(
      "/:workspacebuild/resources",
      async ({ caller, params }) => {
        const { job } = await loadBuild(ctx, params.workspacebuild, caller);
        const resources = await loadResources(makeAgentView(ctx, caller), [job]);
        return resources.get(job.id) ?? [];
      },
      {
        user,
        params,
        response: { 200: t.Array(Resource), ...fails(400, 401, 404) },
        detail: operation({
          tags,
          operationId: "listBuildResources",
          summary: "List resources of a build",
          description: "Returns the resources that the build created; empty until it succeeds.",
          access: "owner",
          scope: "workspace:read",
          placement: "build",
        }),
      },
    )
    .use(buildState(ctx))
    .get(
      "/:workspacebuild/timings",
      async ({ caller, params }) => loadTimings(ctx.store, await loadBuild(ctx, params.workspacebuild, caller)),
      {
        user,
        params,
        response: { 200: BuildTimings, ...fails(400, 401, 404) },
        detail: operation({
          tags,
          operationId: "getBuildTimings",
          summary: "Get the timings of a build",
          access: "owner",
          scope: "workspace:read",
          placement: "build",
        }),
      },
    );

const parseExpectedStatus = (text: string | undefined): "running" | "pending" | undefined => {
  if (text === undefined || text === "") return undefined;
  if (text === "running" || text === "pending") return text;
  throw new AppError("invalid", "Query parameters have invalid values.", {
    validations: [{ field: "expect_status", detail: "must be running or pending" }],
  });
};

// A build that has not started can always be canceled. Otherwise the template decides, except for site owners.
const checkCanCancel = ({ workspace, template }: WorkspaceView, caller: UserCaller, expectedStatus?: string): void => {
  if (!canStartStop(caller, workspace)) throw forbidden("You may not cancel builds of this workspace.");
  if (template.allow_user_cancel_workspace_jobs || isOwner(caller) || expectedStatus === "pending") return;
  throw forbidden("The template does not let its users cancel builds.");
};
