// Dry runs of a template version: a job on the version's own provisioner that looks whether a workspace could be made of these values,
// and never makes one. Seen by who asked for it and by those who look after templates; 404 for everybody else (rules DR-1 to DR-6).
import { Elysia, t } from "elysia";
import { planDryRun } from "#actors/template-version/dry-run-plan.ts";
import { rfc3339 } from "#base/clock.ts";
import { AppError, forbidden, invalidField, notFound } from "#base/errors.ts";
import { NIL_UUID, uuid } from "#base/ids.ts";
import { countOpenDryRuns } from "#db/templates/dry-runs.ts";
import { findTemplateVersion, type ShownVersion } from "#db/templates/versions.ts";
import { findJob, type JobRow } from "#db/workspaces/jobs.ts";
import { mayCreateWorkspaceFor } from "#domain/access.ts";
import { matchedProvisioners, presentJob } from "#domain/builds/job.ts";
import { valuesOf } from "#domain/builds/new-build.ts";
import { manifestOf, mayManageVersion, versionAt, versionPath } from "#domain/template-versions/version.ts";
import { Generic } from "#schema/generic.ts";
import { PlannedResource } from "#schema/templates/template-version.ts";
import { CreateDryRun } from "#schema/workspaces/dry-run.ts";
import { isActive, jobStatus, MatchedProvisioners, ProvisionerJob } from "#schema/workspaces/job.ts";
import { buildTags } from "#src/provisioners/external/tags.ts";
import { presentPlannedResources } from "#src/provisioners/planned.ts";
import { presetWithId } from "#src/provisioners/presets.ts";
import { logRequest } from "../agents/log-query.ts";
import type { ApiContext } from "../context.ts";
import { callers, type UserCaller } from "../http/caller.ts";
import { fails } from "../http/responses.ts";
import { jobLogRoute, jobLogs } from "../jobs/logs.ts";

const tags = ["Templates"];
const user = true;
const params = t.Object({
  ...versionPath.properties,
  job: t.String({ format: "uuid", description: "The dry run's job." }),
});

/** Dry runs one person may have under way: each of them waits for a slot that builds need, too. */
const AT_ONCE = 10;

export const dryRuns = (ctx: ApiContext) =>
  new Elysia({ prefix: "/templateversions/:templateversion/dry-run" })
    .use(callers)
    .post(
      "",
      async ({ caller, params, body, status }) => {
        const found = await versionAt(ctx, params.templateversion, caller);
        const job = await create(ctx, found, body, caller);
        return status(201, presentDryRun(ctx, found, job));
      },
      {
        user,
        params: versionPath,
        body: CreateDryRun,
        response: { 201: ProvisionerJob, ...fails(400, 401, 403, 404, 412, 413, 429, 503) },
        detail: {
          tags,
          operationId: "createDryRun",
          summary: "Try a template version",
          description:
            "Starts a job that looks whether a workspace could be made with these values, on the provisioner that would make it. No workspace is made.",
        },
      },
    )
    .get(
      "/:job",
      async ({ caller, params }) => {
        const { found, job } = await dryRunAt(ctx, params, caller);
        return presentDryRun(ctx, found, job);
      },
      {
        user,
        params,
        response: { 200: ProvisionerJob, ...fails(400, 401, 404) },
        detail: { tags, operationId: "getDryRun", summary: "Get a dry run" },
      },
    )
    .get(
      "/:job/resources",
      async ({ caller, params }) => {
        const { job } = await dryRunAt(ctx, params, caller);
        const status = jobStatus(job);
        if (isActive(job)) throw new AppError("precondition_failed", "The dry run has not ended yet.");
        if (status !== "succeeded") throw new AppError("invalid", `The dry run has ${status}.`, { detail: job.error });
        if (job.input.planned) return job.input.planned;
        const { manifest } = await planDryRun(ctx, job, ctx.accessUrl.href);
        return presentPlannedResources(manifest, { id: job.id, job_id: job.id, created_at: rfc3339(job.created_at) });
      },
      {
        user,
        params,
        response: { 200: t.Array(PlannedResource), ...fails(400, 401, 404, 412) },
        detail: {
          tags,
          operationId: "listDryRunResources",
          summary: "Resources of a dry run",
          description: "What the workspace would have. 412 until the dry run has ended.",
        },
      },
    )
    .get(
      "/:job/logs",
      async ({ caller, params, query, request }) => {
        const asked = logRequest(query);
        const { job } = await dryRunAt(ctx, params, caller);
        return jobLogs(ctx, request, job, asked, caller);
      },
      { params, ...jobLogRoute(tags, "listDryRunLogs", "Log of a dry run") },
    )
    .get(
      "/:job/matched-provisioners",
      async ({ caller, params }) => {
        const { job } = await dryRunAt(ctx, params, caller);
        return matchedProvisioners(job.tags, ctx.jobs, ctx.clock.now());
      },
      {
        user,
        params,
        response: { 200: MatchedProvisioners, ...fails(400, 401, 404) },
        detail: { tags, operationId: "getDryRunMatchedProvisioners", summary: "Workers that could take a dry run" },
      },
    )
    .patch(
      "/:job/cancel",
      async ({ caller, params }) => {
        const { job } = await dryRunAt(ctx, params, caller);
        await ctx.dryRuns.ask(job.id, "cancel", {});
        return { message: "The job has been marked as cancelled." };
      },
      {
        user,
        params,
        response: { 200: Generic, ...fails(400, 401, 404, 412, 503) },
        detail: { tags, operationId: "cancelDryRun", summary: "Cancel a dry run" },
      },
    );

const create = async (
  ctx: ApiContext,
  found: ShownVersion,
  body: CreateDryRun,
  caller: UserCaller,
): Promise<JobRow> => {
  const { version, job } = found;
  const { organization_id } = version;
  if (!mayCreateWorkspaceFor(caller, organization_id, caller.user_id) && !mayManageVersion(caller, found)) {
    throw forbidden("You may not make workspaces in this organization, so you cannot try one either.");
  }
  if (!isActive(job) && jobStatus(job) !== "succeeded") {
    throw new AppError("invalid", "The import of the template version has failed.", {
      detail: job.error.slice(0, 500),
    });
  }
  const manifest = await manifestOf(ctx, found);
  const { template_version_preset_id: preset_id, rich_parameter_values: given = [] } = body;
  const preset = preset_id === undefined ? undefined : presetWithId(manifest, version.id, preset_id);
  if (preset_id !== undefined && !preset) {
    throw invalidField("template_version_preset_id", "the template version has no such preset");
  }
  const row = await ctx.store.get(findTemplateVersion({ id: version.id }));
  if (!row) throw notFound();
  const parameters = await valuesOf(ctx, { row }, manifest, { given, preset }, caller.user_id);
  const open = await ctx.store.get(countOpenDryRuns({ initiator_id: caller.user_id }));
  if ((open?.count ?? 0) >= AT_ONCE) {
    throw new AppError("too_many_requests", `You have ${AT_ONCE} dry runs under way; wait for one or cancel it.`);
  }
  const id = uuid();
  await ctx.dryRuns.ask(id, "create", {
    template_version_id: version.id,
    organization_id,
    initiator_id: caller.user_id,
    file_id: version.file_id,
    provisioner: manifest.provisioner,
    tags: buildTags(manifest, organization_id, ctx.config),
    workspace_name: body.workspace_name || "dry-run",
    parameters,
  });
  const made = await ctx.store.get(findJob({ id }));
  if (!made) throw notFound();
  return made;
};

const dryRunAt = async (
  ctx: ApiContext,
  params: { templateversion: string; job: string },
  caller: UserCaller,
): Promise<{ found: ShownVersion; job: JobRow }> => {
  const found = await versionAt(ctx, params.templateversion, caller);
  const job = await ctx.store.get(findJob({ id: params.job.toLowerCase() }));
  const isIt = job?.type === "template_version_dry_run" && job.input.template_version_id === found.version.id;
  if (!job || !isIt) throw notFound();
  const isMine = job.initiator_id === caller.user_id;
  if (!isMine && !mayManageVersion(caller, found)) throw notFound();
  return { found, job };
};

const presentDryRun = (ctx: ApiContext, { version, template }: ShownVersion, job: JobRow): ProvisionerJob => {
  const metadata = {
    template_version_name: version.name,
    template_id: version.template_id ?? NIL_UUID,
    template_name: template?.name ?? "",
    template_display_name: template?.display_name ?? "",
    template_icon: template?.icon ?? "",
    workspace_name: job.input.workspace_name,
    workspace_build_transition: "start",
  };
  // The values may be somebody's secrets.
  const { template_version_id } = job.input;
  return presentJob({ ...job, input: { template_version_id } }, metadata, ctx.jobs);
};
