// Creates a dry run's job, and the request for its worker: the template with its values filled in for a workspace that is never created.
// Used by the dry run's actor.

import { toRfc3339 } from "#base/clock.ts";
import type { Encryption } from "#base/encryption.ts";
import type { Store } from "#db/engine/store.ts";
import { openDefaults, openVariables } from "#db/templates/variables.ts";
import { findTemplateVersion } from "#db/templates/versions.ts";
import type { JobRow } from "#db/workspaces/jobs.ts";
import { findWorkspaceOwner } from "#db/workspaces/workspaces.ts";
import type { Manifest, ManifestResource } from "#schema/templates/manifest.ts";
import type { PlannedResource } from "#schema/templates/template-version.ts";
import { resolveVariables } from "#src/provisioners/parameters.ts";
import { presentPlannedResources } from "#src/provisioners/planned.ts";
import type { ProvisionRequest } from "#src/provisioners/provisioner.ts";
import { renderManifest } from "#src/provisioners/render.ts";
import { PENDING } from "../job/state.ts";

export type NewDryRun = {
  readonly template_version_id: string;
  /** The version's `part`. */
  readonly part: number;
  readonly organization_id: string;
  readonly initiator_id: string;
  readonly file_id: string;
  readonly provisioner: string;
  readonly tags: Readonly<Record<string, string>>;
  readonly workspace_name: string;
  /** Complete, as returned by resolveParameters. */
  readonly parameters: Readonly<Record<string, string>>;
};

/** Returns the job in the state `pending`. */
export const createDryRunJob = (
  input: NewDryRun,
  { id, key, now }: { id: string; key: number; now: number },
): JobRow => ({
  id,
  key,
  created_at: now,
  updated_at: now,
  organization_id: input.organization_id,
  initiator_id: input.initiator_id,
  type: "template_version_dry_run",
  provisioner: input.provisioner,
  file_id: input.file_id,
  input: {
    template_version_id: input.template_version_id,
    part: input.part,
    workspace_name: input.workspace_name,
    parameters: { ...input.parameters },
  },
  tags: { ...input.tags },
  ...PENDING,
  timings: [],
});

/** Returns the planned resources in the form for callers, without secrets. They are stored with the job. */
export const presentPlan = (job: JobRow, resources: readonly ManifestResource[]): PlannedResource[] => {
  const manifest: Manifest = { provisioner: "terraform", resources: [...resources] };
  return presentPlannedResources(manifest, { id: job.id, job_id: job.id, created_at: toRfc3339(job.created_at) });
};

/**
 * Returns the request to start a workspace that does not exist. The workspace has the ID of the job and no agents. The request contains
 * secrets, so it must never be logged.
 */
export const planDryRun = async (
  { store, encryption }: { readonly store: Store; readonly encryption: Encryption },
  job: JobRow,
  access_url: string,
): Promise<ProvisionRequest> => {
  const { template_version_id = "", workspace_name: name = "", parameters = {} } = job.input;
  const version = await store.get(findTemplateVersion({ id: template_version_id }));
  const owner = await store.get(findWorkspaceOwner({ id: job.initiator_id }));
  if (!version?.manifest || !owner) throw new Error(`dry run ${job.id} has no template or no initiator`);
  const manifest = JSON.parse(version.manifest) as Manifest;
  const declared = openDefaults(encryption, version.id, manifest.variables ?? []);
  const variables = resolveVariables(declared, openVariables(encryption, version)).values;
  const workspace = { id: job.id, name };
  return {
    job_id: job.id,
    build_id: job.id,
    build_number: 1,
    transition: "start",
    workspace,
    owner,
    // Terraform fills in its own texts.
    manifest:
      manifest.provisioner === "terraform"
        ? manifest
        : renderManifest(manifest, { parameters, variables, workspace, owner }),
    parameters,
    agents: [],
    access_url,
    state: null,
  };
};
