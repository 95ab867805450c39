// From a template version and the caller's input to a build that an actor can queue: the version must be usable, the parameters
// complete. Used by the creation of workspaces and of further builds.
import { isForBuiltIn } from "#actors/runtime/job-queue.ts";
import type { NewBuild } from "#actors/workspace/decision.ts";
import type { Config } from "#base/config.ts";
import { AppError, forbidden, invalidField } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import type { Store } from "#db/engine/store.ts";
import { findTemplateEvenDeleted } from "#db/templates/templates.ts";
import { findTemplateVersion, type TemplateVersionRow } from "#db/templates/versions.ts";
import { readMemberships } from "#db/users/members.ts";
import { findJob } from "#db/workspaces/jobs.ts";
import type { Manifest } from "#schema/templates/manifest.ts";
import type { CreateBuild } from "#schema/workspaces/build.ts";
import { type JobStatus, jobStatus } from "#schema/workspaces/job.ts";
import { PREBUILDS_USER_ID } from "#schema/workspaces/prebuilds.ts";
import { hasFiles } from "#schema/workspaces/snapshot.ts";
import { buildTags } from "#src/provisioners/external/tags.ts";
import { type ParameterInput, resolveParameters } from "#src/provisioners/parameters.ts";
import { presetWithId } from "#src/provisioners/presets.ts";
import { mayWorkIn } from "../access.ts";
import { withPlans } from "../repositories/planned.ts";
import type { Repositories } from "../repositories/repositories.ts";
import { askedFor, type FormDeps, known } from "../template-versions/form.ts";
import { LOCAL_PROVISIONER, mayStartLocal } from "./local-rule.ts";

/** A version with the state of its import. */
export type KnownVersion = { readonly row: TemplateVersionRow; readonly status: JobStatus };

export const loadVersion = async (store: Store, id: string): Promise<KnownVersion | undefined> => {
  const row = await store.get(findTemplateVersion({ id: id.toLowerCase() }));
  const job = row && (await store.get(findJob({ id: row.job_id })));
  return row && job ? { row, status: jobStatus(job) } : undefined;
};

/** The manifest of a version that can be built. 400 when it is archived or its import failed; `unready` while it is imported. */
export const usableManifest = ({ row, status }: KnownVersion, unready: "invalid" | "not_acceptable"): Manifest => {
  if (row.archived) throw new AppError("invalid", "The template version is archived.");
  if (status === "pending" || status === "running" || status === "canceling") {
    throw new AppError(unready, "The template version is still being imported.");
  }
  if (status !== "succeeded" || row.manifest === null) {
    throw new AppError("invalid", "The import of the template version has failed.");
  }
  return JSON.parse(row.manifest) as Manifest;
};

/**
 * The values of a start, and the manifest as it is for them: where questions depend on each other in Terraform's words, a plan says which are
 * asked and which tags a worker must have.
 */
export const resolveValues = async (
  deps: FormDeps,
  { row }: Pick<KnownVersion, "row">,
  manifest: Manifest,
  { given, previous, preset }: Omit<ParameterInput, "manifest">,
  owner_id: string,
): Promise<{ values: Record<string, string>; manifest: Manifest }> => {
  const named = given.map(({ name, value }) => [name, value] as const);
  const chosen = Object.entries(preset?.parameters ?? {}).map(([name, value]) => [name, String(value)] as const);
  const inputs = { ...previous, ...Object.fromEntries([...named, ...chosen]) };
  const asked = await askedFor(deps, row, manifest, inputs, owner_id);
  if (asked === manifest) return { manifest, values: resolveParameters({ manifest, given, previous, preset }) };
  const wanted = known(manifest, asked, Object.fromEntries(named), previous);
  const fitting = given.filter(({ name }) => Object.hasOwn(wanted, name));
  const isAsked = (name: string): boolean => asked.parameters?.some((one) => one.name === name) === true;
  const parameters = Object.fromEntries(chosen.filter(([name]) => isAsked(name)));
  const values = resolveParameters({
    manifest: asked,
    given: fitting,
    previous,
    ...(preset ? { preset: { ...preset, parameters } } : {}),
  });
  return { manifest: asked, values };
};

/** The manifest with the tags for values that a build keeps; those of the import where the template refuses the values by now. */
const taggedFor = async (
  deps: FormDeps,
  { row }: Pick<KnownVersion, "row">,
  manifest: Manifest,
  values: Readonly<Record<string, string>>,
  owner_id: string,
): Promise<Manifest> => {
  if (Object.keys(manifest.terraform?.workspace_tags ?? {}).length === 0) return manifest;
  return askedFor(deps, row, manifest, values, owner_id).catch((error) => {
    if (error instanceof AppError) return manifest;
    throw error;
  });
};

type Input = Pick<CreateBuild, "rich_parameter_values" | "template_version_preset_id"> & {
  readonly transition: NewBuild["transition"];
  readonly initiator_id: string;
  /** Whose workspace it is for. */
  readonly owner_id: string;
  readonly reason: string;
  readonly orphan?: boolean;
  readonly log_level?: string;
  /** Of a delete: nothing stays in the trash. */
  readonly permanent?: boolean | undefined;
  /** As NewBuild has it. */
  readonly no_user_data: boolean;
  readonly told?: string;
};

export type BuildDeps = {
  readonly store: Store;
  readonly config: Config;
  readonly repositories: Repositories;
} & FormDeps;

const DAY_MS = 86_400_000;

type Deleting = Input & { readonly provisioner: string; readonly tags: NewBuild["tags"] };

/** For how long the files of a workspace stay when it is deleted; nothing where they cannot stay, or are not to. */
const findTrashTime = async (
  store: Store,
  { row }: KnownVersion,
  { transition, orphan, permanent, owner_id, provisioner, tags }: Deleting,
): Promise<{ kept_ms?: number }> => {
  if (transition !== "delete" || orphan || permanent || owner_id === PREBUILDS_USER_ID) return {};
  if (!hasFiles(provisioner) || !isForBuiltIn(tags)) return {};
  const template = await store.get(findTemplateEvenDeleted({ id: row.template_id ?? "" }));
  return template && template.trash_days > 0 ? { kept_ms: template.trash_days * DAY_MS } : {};
};

/** Rejects with 403 when the owner of a workspace is no member of its organization: then it may be stopped and deleted, and not run. */
export const checkOwnerBelongs = async (
  store: Store,
  { owner_id, organization_id }: { readonly owner_id: string; readonly organization_id: string },
): Promise<void> => {
  if (owner_id === PREBUILDS_USER_ID || mayWorkIn(await readMemberships(store, owner_id), organization_id)) return;
  throw forbidden("The owner of the workspace is not a member of its organization.");
};

/**
 * The build with fresh ids. 400 for a preset or parameter that does not fit, 403 for a start that may not be; `previous` are the values of the
 * build before.
 */
export const newBuild = async (
  deps: BuildDeps,
  version: KnownVersion,
  manifest: Manifest,
  input: Input,
  previous?: Readonly<Record<string, string>>,
): Promise<NewBuild> => {
  const { store } = deps;
  // What is stopped or removed may always be.
  if (input.transition === "start") {
    await checkOwnerBelongs(store, { owner_id: input.owner_id, organization_id: version.row.organization_id });
  }
  if (input.transition === "start" && manifest.provisioner === LOCAL_PROVISIONER) {
    await mayStartLocal(deps, { ...input, author_id: version.row.created_by });
  }
  const { rich_parameter_values: given = [], template_version_preset_id: preset_id } = input;
  const preset = preset_id === undefined ? undefined : presetWithId(manifest, version.row.id, preset_id);
  if (preset_id !== undefined && !preset) {
    throw invalidField("template_version_preset_id", "the template version has no such preset");
  }
  // What is stopped or removed keeps the values it has, even when a newer version would refuse them.
  const { values: resolved, manifest: asked } =
    input.transition === "start" || previous === undefined
      ? await resolveValues(deps, version, manifest, { given, previous, preset }, input.owner_id)
      : { values: previous, manifest: await taggedFor(deps, version, manifest, previous, input.owner_id) };
  const values =
    input.transition === "start"
      ? await withPlans(deps, asked, resolved, {
          reader_id: input.no_user_data ? input.initiator_id : input.owner_id,
          previous,
        })
      : resolved;
  const tags = input.orphan ? {} : buildTags(asked, version.row.organization_id, deps.config);
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
    // What is only forgotten needs no worker of its own: the built-in one is always there.
    tags,
    ...(await findTrashTime(store, version, { ...input, provisioner: manifest.provisioner, tags })),
    ...(input.told === undefined ? {} : { told: input.told }),
  };
};
