// Plans a build from a template version and the caller's input: checks that the version is usable and the parameters are complete. Used for
// new workspaces and further builds.
import type { NewBuild } from "#actors/workspace/decision.ts";
import type { Config } from "#base/config.ts";
import { AppError, forbidden, invalidField } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import type { Store } from "#db/engine/store.ts";
import { findTemplateEvenDeleted } from "#db/templates/templates.ts";
import { findTemplateVersion, type TemplateVersionRow } from "#db/templates/versions.ts";
import { readMemberships } from "#db/users/members.ts";
import { findJob } from "#db/workspaces/jobs.ts";
import { findWorkspace } from "#db/workspaces/workspaces.ts";
import type { Manifest } from "#schema/templates/manifest.ts";
import type { CreateBuild } from "#schema/workspaces/build.ts";
import { type JobStatus, toJobStatus } from "#schema/workspaces/job.ts";
import { PREBUILDS_USER_ID } from "#schema/workspaces/prebuilds.ts";
import { hasFiles } from "#schema/workspaces/snapshot.ts";
import { buildTags, isForBuiltIn } from "#src/provisioners/external/tags.ts";
import { type ParameterInput, resolveParameters } from "#src/provisioners/parameters.ts";
import { findPreset } from "#src/provisioners/presets.ts";
import { ProvisionError, type ProvisionRequest } from "#src/provisioners/provisioner.ts";
import { canWorkIn } from "../access.ts";
import { withPlans } from "../repositories/planned.ts";
import type { Repositories } from "../repositories/repositories.ts";
import { type FormDeps, pickApplicable, resolveManifest } from "../template-versions/form.ts";
import { canHaveLocalNow, checkLocalStart, LOCAL_PROVISIONER } from "./local-rule.ts";
import { explainUnavailable } from "./provisioners.ts";

/** A version with the status of its import. */
export type VersionWithStatus = { readonly row: TemplateVersionRow; readonly status: JobStatus };

export const loadVersion = async (store: Store, id: string): Promise<VersionWithStatus | undefined> => {
  const row = await store.get(findTemplateVersion({ id: id.toLowerCase() }));
  const job = row && (await store.get(findJob({ id: row.job_id })));
  return row && job ? { row, status: toJobStatus(job) } : undefined;
};

/**
 * Returns the manifest of a usable version. Rejects with 400 when its import failed, and with `unready` while it is being imported. A start
 * with an archived version is rejected with 400, too.
 */
export const requireUsableManifest = (
  { row, status }: VersionWithStatus,
  unready: "invalid" | "not_acceptable",
  transition: NewBuild["transition"] = "start",
): Manifest => {
  if (row.archived && transition === "start") throw new AppError("invalid", "The template version is archived.");
  if (status === "pending" || status === "running" || status === "canceling") {
    throw new AppError(unready, "The template version is still being imported.");
  }
  if (status !== "succeeded" || row.manifest === null) {
    throw new AppError("invalid", "The import of the template version has failed.");
  }
  return JSON.parse(row.manifest) as Manifest;
};

/**
 * Returns the parameter values of a start, and the manifest for them. If Terraform parameters depend on each other, a plan determines which
 * ones apply and which tags a worker needs.
 */
export const resolveValues = async (
  deps: FormDeps,
  { row }: Pick<VersionWithStatus, "row">,
  manifest: Manifest,
  { given, previous, preset }: Omit<ParameterInput, "manifest">,
  owner_id: string,
): Promise<{ values: Record<string, string>; manifest: Manifest }> => {
  const givenPairs = given.map(({ name, value }) => [name, value] as const);
  const presetPairs = Object.entries(preset?.parameters ?? {}).map(([name, value]) => [name, String(value)] as const);
  const inputs = { ...previous, ...Object.fromEntries([...givenPairs, ...presetPairs]) };
  const requested = await resolveManifest(deps, row, manifest, inputs, owner_id);
  if (requested === manifest) return { manifest, values: resolveParameters({ manifest, given, previous, preset }) };
  const applicable = pickApplicable(manifest, requested, Object.fromEntries(givenPairs), previous);
  const applicableGiven = given.filter(({ name }) => Object.hasOwn(applicable, name));
  const isParameter = (name: string): boolean => requested.parameters?.some((one) => one.name === name) === true;
  const parameters = Object.fromEntries(presetPairs.filter(([name]) => isParameter(name)));
  const values = resolveParameters({
    manifest: requested,
    given: applicableGiven,
    previous,
    ...(preset ? { preset: { ...preset, parameters } } : {}),
  });
  return { manifest: requested, values };
};

/** Returns the manifest with the tags for values that a build keeps, or the import's tags if the template no longer accepts the values. */
const addTags = async (
  deps: FormDeps,
  { row }: Pick<VersionWithStatus, "row">,
  manifest: Manifest,
  values: Readonly<Record<string, string>>,
  owner_id: string,
): Promise<Manifest> => {
  if (Object.keys(manifest.terraform?.workspace_tags ?? {}).length === 0) return manifest;
  return resolveManifest(deps, row, manifest, values, owner_id).catch((error) => {
    if (error instanceof AppError) return manifest;
    throw error;
  });
};

type BuildInput = Pick<CreateBuild, "rich_parameter_values" | "template_version_preset_id"> & {
  readonly transition: NewBuild["transition"];
  readonly initiator_id: string;
  /** The workspace's owner. */
  readonly owner_id: string;
  readonly reason: string;
  readonly orphan?: boolean;
  readonly log_level?: string;
  /** For a delete: skips the trash. */
  readonly permanent?: boolean | undefined;
  /** See NewBuild. */
  readonly no_user_data: boolean;
  /** Sealed. See NewBuild. */
  readonly state_override?: string;
  /** The plan of a repository that was read for this build, as a parameter's value. */
  readonly repository_plan?: string | undefined;
};

export type BuildDeps = {
  readonly store: Store;
  readonly config: Config;
  readonly repositories: Repositories;
} & FormDeps;

const DAY_MS = 86_400_000;

type DeleteInput = BuildInput & { readonly provisioner: string; readonly tags: NewBuild["tags"] };

/** Returns how long the files of a deleted workspace are kept; undefined if they cannot or should not be kept. */
const findTrashTime = async (
  store: Store,
  { row }: VersionWithStatus,
  { transition, orphan, permanent, owner_id, provisioner, tags }: DeleteInput,
): Promise<{ kept_ms?: number }> => {
  if (transition !== "delete" || orphan || permanent || owner_id === PREBUILDS_USER_ID) return {};
  if (!hasFiles(provisioner) || !isForBuiltIn(tags)) return {};
  const template = await store.get(findTemplateEvenDeleted({ id: row.template_id ?? "" }));
  return template && template.trash_days > 0 ? { kept_ms: template.trash_days * DAY_MS } : {};
};

/** Rejects with 403 when a workspace's owner is not a member of its organization. It can then be stopped and deleted but not started. */
export const checkOwnerBelongs = async (
  store: Store,
  { owner_id, organization_id }: { readonly owner_id: string; readonly organization_id: string },
): Promise<void> => {
  if (owner_id === PREBUILDS_USER_ID || canWorkIn(await readMemberships(store, owner_id), organization_id)) return;
  throw forbidden("The owner of the workspace is not a member of its organization.");
};

/**
 * Rejects with ProvisionError if the owner of a start that is about to run has lost the right to it since it was requested. Copying the files
 * of a fork, for example, may take half an hour before its start (rules FO-9, LP-15).
 */
export const checkStartNow = async (
  deps: Pick<BuildDeps, "store" | "config">,
  { manifest, transition, owner, workspace }: ProvisionRequest,
): Promise<void> => {
  if (transition !== "start" || owner.id === PREBUILDS_USER_ID) return;
  const row = await deps.store.get(findWorkspace({ id: workspace.id }));
  if (row && !canWorkIn(await readMemberships(deps.store, owner.id), row.organization_id))
    throw new ProvisionError("The owner of the workspace is not a member of its organization.");
  if (manifest.provisioner === LOCAL_PROVISIONER && !(await canHaveLocalNow(deps, owner.id)))
    throw new ProvisionError("The workspace's owner can't have local workspaces on this server any more.");
};

const checkStart = async (
  deps: BuildDeps,
  { row }: VersionWithStatus,
  { provisioner }: Manifest,
  { owner_id, initiator_id }: BuildInput,
): Promise<void> => {
  await checkOwnerBelongs(deps.store, { owner_id, organization_id: row.organization_id });
  if (provisioner === LOCAL_PROVISIONER)
    await checkLocalStart(deps, { owner_id, initiator_id, author_id: row.created_by });
  const detail = explainUnavailable(deps.config, provisioner);
  if (detail !== "") throw new AppError("invalid", "Docker workspaces cannot start.", { detail });
};

/**
 * Returns the build with new IDs. Rejects with 400 for an invalid preset or parameter, and with 403 for a forbidden start. `previous` are
 * the values of the previous build.
 */
export const planNewBuild = async (
  deps: BuildDeps,
  version: VersionWithStatus,
  manifest: Manifest,
  input: BuildInput,
  previous?: Readonly<Record<string, string>>,
): Promise<NewBuild> => {
  const { store } = deps;
  const isStart = input.transition === "start";
  // Stops and deletes are always allowed.
  if (isStart) await checkStart(deps, version, manifest, input);
  const { rich_parameter_values: given = [], template_version_preset_id: preset_id } = input;
  const preset = preset_id === undefined ? undefined : findPreset(manifest, version.row.id, preset_id);
  if (preset_id !== undefined && !preset) {
    throw invalidField("template_version_preset_id", "the template version has no such preset");
  }
  // Stops and deletes keep their values, even if a newer version would reject them.
  const { values: resolved, manifest: requested } =
    isStart || previous === undefined
      ? await resolveValues(deps, version, manifest, { given, previous, preset }, input.owner_id)
      : { values: previous, manifest: await addTags(deps, version, manifest, previous, input.owner_id) };
  const values = isStart
    ? await withPlans(deps, requested, resolved, {
        reader_id: input.no_user_data ? input.initiator_id : input.owner_id,
        previous,
        made: input.repository_plan,
      })
    : resolved;
  const tags = input.orphan ? {} : buildTags(requested, version.row.organization_id, deps.config);
  return {
    id: uuid(),
    job_id: uuid(),
    job_key: await store.reserve("jobs", 1),
    transition: input.transition,
    template_version_id: version.row.id,
    template_version_preset_id: preset_id?.toLowerCase() ?? null,
    initiator_id: input.initiator_id,
    no_user_data: input.no_user_data,
    reason: input.reason,
    orphan: input.orphan ?? false,
    log_level: input.log_level ?? "",
    parameters: Object.entries(values).map(([name, value]) => ({ name, value })),
    provisioner: manifest.provisioner,
    file_id: version.row.file_id,
    // A build that only removes the record can run on the built-in worker, which always exists.
    tags,
    ...(await findTrashTime(store, version, { ...input, provisioner: manifest.provisioner, tags })),
    ...(input.state_override === undefined ? {} : { told: input.state_override }),
  };
};
