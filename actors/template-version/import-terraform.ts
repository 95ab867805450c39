// Imports a Terraform template: checks the values of its variables, and then runs the provisioner (rules TF-6, TP-15).
import type { Manifest } from "#schema/templates/manifest.ts";
import { getRequestedTags } from "#src/provisioners/external/tags.ts";
import { resolveVariables } from "#src/provisioners/parameters.ts";
import { ProvisionError, type Report } from "#src/provisioners/provisioner.ts";
import type { ImportRequest, TerraformImport } from "#src/provisioners/terraform/import.ts";
import { toVariable } from "#src/provisioners/terraform/manifest.ts";
import type { TerraformSource } from "#src/provisioners/terraform/source.ts";
import type { TemplateArchive } from "#src/provisioners/terraform/work.ts";
import type { JobReport } from "../job/report.ts";
import type { Worker } from "../runtime/job-queue.ts";
import type { Tags } from "../runtime/remote-queues.ts";
import { failImport, type ImportFailure } from "./import.ts";
import type { ImportResult } from "./state.ts";

export type TerraformImports = {
  /** Runs the import on the given worker. Throws ProvisionError, WorkerLostError, or the signal's reason. */
  readonly run: (job: ImportJob, worker: Worker, signal: AbortSignal) => Promise<TerraformImport>;
  readonly accessUrl: () => URL;
  /** Returns the IDs of the accounts that can be linked on this server. */
  readonly accounts: () => readonly string[];
  /** Stores a file as an upload of this user and returns its ID. */
  readonly keep: (bytes: Uint8Array, user_id: string) => Promise<string>;
};

export type ImportJob = { readonly request: ImportRequest; readonly source: TerraformSource; readonly report: Report };

const STAGE = "Parsing template parameters";

type TerraformImportInput = {
  readonly job_id: string;
  readonly worker: Worker;
  /** The tags that the worker must have. Builds require the same tags. */
  readonly tags: Tags;
  readonly archive: TemplateArchive;
  readonly source: TerraformSource;
  readonly values: Readonly<Record<string, string>>;
  readonly created_by: string;
  readonly report: JobReport;
};

/** Imports the template. Throws the signal's reason when canceled, and WorkerLostError when the import must begin again. */
export const importTerraform = async (
  { job_id, worker, tags, archive, source, values, created_by, report }: TerraformImportInput,
  terraform: TerraformImports | undefined,
  signal: AbortSignal,
): Promise<ImportResult | ImportFailure> => {
  const fail = (reasons: readonly string[], error_code = ""): ImportFailure =>
    failImport(report, STAGE, reasons, error_code);
  if (!terraform) return fail(["This server does not support Terraform templates."]);
  const variables = source.variables.map((variable) => toVariable(variable));
  const unknown = Object.keys(values).filter((name) => !variables.some((variable) => variable.name === name));
  if (unknown.length > 0) return fail(unknown.map((name) => `variable ${name}: the template has no such variable`));
  const { missing, invalid } = resolveVariables(variables, values);
  if (invalid.length > 0) return fail(invalid.map(({ field, detail }) => `variable ${field}: ${detail}`));
  const unset = missing.filter((name) => !source.given.has(name));
  if (unset.length > 0) {
    const manifest: Manifest = { provisioner: "terraform", variables, resources: [] };
    const messages = unset.map((name) => `variable ${name}: a value is required`);
    return { ...fail(messages, "REQUIRED_TEMPLATE_VARIABLES"), manifest: JSON.stringify(manifest) };
  }
  const { run, accessUrl, accounts, keep } = terraform;
  try {
    const request = { job_id, archive, variables: values, access_url: accessUrl().href, accounts: accounts() };
    const { manifest, cache } = await run({ request, source, report }, worker, signal);
    const cache_file = cache && (await keep(cache.archive, created_by));
    const terraformSection = manifest.terraform && { ...manifest.terraform, ...(cache_file ? { cache_file } : {}) };
    const requestedTags = getRequestedTags(tags);
    const fullManifest = {
      ...manifest,
      terraform: terraformSection,
      ...(Object.keys(requestedTags).length > 0 ? { tags: requestedTags } : {}),
    };
    return { manifest: JSON.stringify(fullManifest), readme: source.readme };
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof ProvisionError)) throw error;
    return fail([error.message], error.code);
  }
};
