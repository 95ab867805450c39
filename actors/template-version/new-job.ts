// Builds a new template version and the row of its import job. Used by the actor.
import type { JobRow } from "#db/workspaces/jobs.ts";
import { PENDING } from "../job/state.ts";

export type NewTemplateVersion = {
  readonly job_id: string;
  readonly organization_id: string;
  readonly template_id: string | null;
  readonly name: string;
  readonly message: string;
  readonly file_id: string;
  readonly tags: Readonly<Record<string, string>>;
  /** As returned by `sealVariables`. */
  readonly sealed_variable_values: string;
  readonly created_by: string;
};

/** Returns the job in the state `pending`. */
export const newJob = (
  input: NewTemplateVersion,
  { version_id, key, now }: { version_id: string; key: number; now: number },
): JobRow => ({
  id: input.job_id,
  key,
  created_at: now,
  updated_at: now,
  organization_id: input.organization_id,
  initiator_id: input.created_by,
  type: "template_version_import",
  provisioner: "",
  file_id: input.file_id,
  input: { template_version_id: version_id },
  tags: { ...input.tags },
  ...PENDING,
  timings: [],
});
