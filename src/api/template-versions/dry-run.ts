// Dry runs of a template version: a job on the version's own provisioner that checks whether a workspace could be created with these
// values, and never creates one. Visible to the person who requested it and to template administrators; 404 for everyone else (rules DR-1
// to DR-6).
import { t } from "elysia";
import { planDryRun } from "#actors/template-version/dry-run-plan.ts";
import { toRfc3339 } from "#base/clock.ts";
import { AppError } from "#base/errors.ts";
import { matchProvisioners } from "#domain/builds/job.ts";
import { createDryRun, loadDryRun, presentDryRun } from "#domain/template-versions/dry-run.ts";
import { loadVisibleVersion, versionPath } from "#domain/template-versions/find.ts";
import { Generic } from "#schema/generic.ts";
import { PlannedResource } from "#schema/templates/template-version.ts";
import { CreateDryRun } from "#schema/workspaces/dry-run.ts";
import { isActive, MatchedProvisioners, ProvisionerJob, toJobStatus } from "#schema/workspaces/job.ts";
import { presentPlannedResources } from "#src/provisioners/planned.ts";
import { parseLogRequest } from "../agents/log-query.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { jobLogRoute, jobLogs } from "../jobs/logs.ts";

const tags = ["Templates"];
const user = true;
const params = t.Object({
  ...versionPath.properties,
  job: t.String({ format: "uuid", description: "The ID of the dry run's job." }),
});

export const dryRuns = (ctx: ApiContext) =>
  routes({ prefix: "/templateversions/:templateversion/dry-run" })
    .use(callers)
    .post(
      "",
      async ({ caller, params, body, status }) => {
        const found = await loadVisibleVersion(ctx, params.templateversion, caller);
        const job = await createDryRun(ctx, found, body, caller);
        return status(201, presentDryRun(ctx, found, job));
      },
      {
        user,
        params: versionPath,
        body: CreateDryRun,
        response: { 201: ProvisionerJob, ...fails(400, 401, 403, 404, 412, 413, 429, 503) },
        detail: operation({
          tags,
          operationId: "createDryRun",
          summary: "Start a dry run",
          description:
            "Starts a job that checks whether a workspace could be created with these values, on the provisioner that would build it. Does not create a workspace.",
          example: { workspace_name: "trial", rich_parameter_values: [] },
          access: "members",
          scope: "template:update",
          placement: "template_version",
        }),
      },
    )
    .get(
      "/:job",
      async ({ caller, params }) => {
        const { found, job } = await loadDryRun(ctx, params, caller);
        return presentDryRun(ctx, found, job);
      },
      {
        user,
        params,
        response: { 200: ProvisionerJob, ...fails(400, 401, 404) },
        detail: operation({
          tags,
          operationId: "getDryRun",
          summary: "Get a dry run",
          access: "owner",
          scope: "template:read",
          placement: "template_version",
        }),
      },
    )
    .get(
      "/:job/resources",
      async ({ caller, params }) => {
        const { job } = await loadDryRun(ctx, params, caller);
        const status = toJobStatus(job);
        if (isActive(job)) throw new AppError("precondition_failed", "The dry run has not ended yet.");
        if (status !== "succeeded") throw new AppError("invalid", `The dry run has ${status}.`, { detail: job.error });
        if (job.input.planned) return job.input.planned;
        const { manifest } = await planDryRun(ctx, job, ctx.accessUrl.href);
        return presentPlannedResources(manifest, { id: job.id, job_id: job.id, created_at: toRfc3339(job.created_at) });
      },
      {
        user,
        params,
        response: { 200: t.Array(PlannedResource), ...fails(400, 401, 404, 412) },
        detail: operation({
          tags,
          operationId: "listDryRunResources",
          summary: "List resources of a dry run",
          description: "Returns the resources that the workspace would have. Returns 412 until the dry run ends.",
          access: "owner",
          scope: "template:read",
          placement: "template_version",
        }),
      },
    )
    .get(
      "/:job/logs",
      async ({ caller, params, query, request }) => {
        const requested = parseLogRequest(query);
        const { job } = await loadDryRun(ctx, params, caller);
        return jobLogs(ctx, request, job, requested, caller);
      },
      {
        params,
        ...jobLogRoute({
          tags,
          operationId: "listDryRunLogs",
          summary: "List log lines of a dry run",
          access: "owner",
          scope: "template:read",
          placement: "template_version",
        }),
      },
    )
    .get(
      "/:job/matched-provisioners",
      async ({ caller, params }) => {
        const { job } = await loadDryRun(ctx, params, caller);
        return matchProvisioners(job.tags, ctx.jobs, ctx.clock.now());
      },
      {
        user,
        params,
        response: { 200: MatchedProvisioners, ...fails(400, 401, 404) },
        detail: operation({
          tags,
          operationId: "getDryRunMatchedProvisioners",
          summary: "Get the workers that match a dry run",
          access: "owner",
          scope: "template:read",
          placement: "first",
        }),
      },
    )
    .patch(
      "/:job/cancel",
      async ({ caller, params }) => {
        const { job } = await loadDryRun(ctx, params, caller);
        await ctx.dryRuns.ask(job.id, "cancel", {});
        return { message: "The job has been marked as cancelled." };
      },
      {
        user,
        params,
        response: { 200: Generic, ...fails(400, 401, 404, 412, 503) },
        detail: operation({
          tags,
          operationId: "cancelDryRun",
          summary: "Cancel a dry run",
          access: "owner",
          scope: "template:update",
          placement: "template_version",
        }),
      },
    );
