// Starts, finds and presents dry runs of a template version. Visible to the person who started one and to template administrators (rules
// DR-1 to DR-6).
import { AppError, forbidden, invalidField, notFound } from "#base/errors.ts";
import { NIL_UUID, uuid } from "#base/ids.ts";
import { countOpenDryRuns } from "#db/templates/dry-runs.ts";
import { findTemplateVersion, type VersionView } from "#db/templates/versions.ts";
import { findJob, type JobRow } from "#db/workspaces/jobs.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { CreateDryRun } from "#schema/workspaces/dry-run.ts";
import { isActive, type ProvisionerJob, toJobStatus } from "#schema/workspaces/job.ts";
import { buildTags } from "#src/provisioners/external/tags.ts";
import { findPreset } from "#src/provisioners/presets.ts";
import { canCreateWorkspaceFor } from "../access.ts";
import { presentJob } from "../builds/job.ts";
import { resolveValues } from "../builds/new-build.ts";
import type { DomainContext } from "../context.ts";
import { canManageVersion, loadManifest, loadVisibleVersion } from "./find.ts";

/** Maximum concurrent dry runs per person, because each occupies a slot that builds need too. */
const MAX_CONCURRENT = 10;

/**
 * Starts a dry run of the version with these values. Rejects with 400, 403 or 412, and with 429 when the caller has too many in progress.
 */
export const createDryRun = async (
  ctx: DomainContext,
  found: VersionView,
  body: CreateDryRun,
  caller: UserCaller,
): Promise<JobRow> => {
  const { version, job } = found;
  const { organization_id } = version;
  if (!canCreateWorkspaceFor(caller, organization_id, caller.user_id) && !canManageVersion(caller, found)) {
    throw forbidden("You may not create workspaces in this organization, so you can't start a dry run.");
  }
  if (!isActive(job) && toJobStatus(job) !== "succeeded") {
    throw new AppError("invalid", "The import of the template version has failed.", {
      detail: job.error.slice(0, 500),
    });
  }
  const manifest = await loadManifest(ctx, found);
  const { template_version_preset_id: preset_id, rich_parameter_values: given = [] } = body;
  const preset = preset_id === undefined ? undefined : findPreset(manifest, version.id, preset_id);
  if (preset_id !== undefined && !preset) {
    throw invalidField("template_version_preset_id", "the template version has no such preset");
  }
  const row = await ctx.store.get(findTemplateVersion({ id: version.id }));
  if (!row) throw notFound();
  const { values: parameters, manifest: requested } = await resolveValues(
    ctx,
    { row },
    manifest,
    { given, preset },
    caller.user_id,
  );
  const openRuns = await ctx.store.get(countOpenDryRuns({ initiator_id: caller.user_id }));
  if ((openRuns?.count ?? 0) >= MAX_CONCURRENT) {
    throw new AppError(
      "too_many_requests",
      `You have ${MAX_CONCURRENT} dry runs in progress. Wait for one or cancel it.`,
    );
  }
  const id = uuid();
  ctx.dryRuns.expect(id, row.part);
  await ctx.dryRuns.ask(id, "create", {
    template_version_id: version.id,
    part: row.part,
    organization_id,
    initiator_id: caller.user_id,
    file_id: version.file_id,
    provisioner: manifest.provisioner,
    tags: buildTags(requested, organization_id, ctx.config),
    workspace_name: body.workspace_name || "dry-run",
    parameters,
  });
  const created = await ctx.store.get(findJob({ id }));
  if (!created) throw notFound();
  return created;
};

/** Returns the dry run in a path, for the person who started it and users who can change the version. Rejects with 404 otherwise. */
export const loadDryRun = async (
  ctx: DomainContext,
  params: { templateversion: string; job: string },
  caller: UserCaller,
): Promise<{ found: VersionView; job: JobRow }> => {
  const found = await loadVisibleVersion(ctx, params.templateversion, caller);
  const job = await ctx.store.get(findJob({ id: params.job.toLowerCase() }));
  const isDryRun = job?.type === "template_version_dry_run" && job.input.template_version_id === found.version.id;
  if (!job || !isDryRun) throw notFound();
  const isOwn = job.initiator_id === caller.user_id;
  if (!isOwn && !canManageVersion(caller, found)) throw notFound();
  return { found, job };
};

export const presentDryRun = (ctx: DomainContext, { version, template }: VersionView, job: JobRow): ProvisionerJob => {
  const metadata = {
    template_version_name: version.name,
    template_id: version.template_id ?? NIL_UUID,
    template_name: template?.name ?? "",
    template_display_name: template?.display_name ?? "",
    template_icon: template?.icon ?? "",
    workspace_name: job.input.workspace_name,
    workspace_build_transition: "start",
  };
  // Values are omitted because they can be secrets.
  const { template_version_id } = job.input;
  return presentJob({ ...job, input: { template_version_id } }, metadata, ctx.jobs);
};
