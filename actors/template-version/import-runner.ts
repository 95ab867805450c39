// Runs imports outside of any mailbox: waits for a slot, reads the upload, checks the manifest, and reports the result. An import can be
// repeated, so it begins again after a crash (rules TP-13 to TP-15).
import type { Clock } from "#base/clock.ts";
import type { Encryption } from "#base/encryption.ts";
import { log } from "#base/log.ts";
import type { Blobs } from "#db/blobs.ts";
import type { Store } from "#db/engine/store.ts";
import { findFile } from "#db/templates/files.ts";
import { openVariables, sealManifest } from "#db/templates/variables.ts";
import type { Manifest } from "#schema/templates/manifest.ts";
import { ArchiveError } from "#src/provisioners/archive-entry.ts";
import { describeTags } from "#src/provisioners/external/tags.ts";
import { WorkerLostError } from "#src/provisioners/provisioner.ts";
import { readTerraformSource } from "#src/provisioners/terraform/source.ts";
import { JobReport } from "../job/report.ts";
import { askWithRetries, beginWithRetries, isRetryable, isServerStopping } from "../job/report-retries.ts";
import type { AttemptRef } from "../job/state.ts";
import type { Directory } from "../runtime/directory.ts";
import type { JobQueue, Worker } from "../runtime/job-queue.ts";
import type { Tags } from "../runtime/remote-queues.ts";
import type { Imports, StartedImport, TemplateVersionActor } from "./actor.ts";
import { type ImportFailure, importTemplate } from "./import.ts";
import { importTerraform, type TerraformImports } from "./import-terraform.ts";
import type { ImportResult } from "./state.ts";

type Deps = {
  readonly clock: Clock;
  readonly store: Store;
  readonly blobs: Blobs;
  readonly encryption: Encryption;
  readonly jobs: JobQueue;
  readonly versions: () => Directory<TemplateVersionActor>;
  /** Plans Terraform templates; undefined where they are disabled. */
  readonly terraform: TerraformImports | undefined;
};

const HEARTBEAT_MS = 60_000;

/** Why an import is requeued. `lost`: its worker was lost. `moved`: the database did not answer. */
type RequeueReason =
  | { readonly lost: string; readonly moved?: never }
  | { readonly moved: true; readonly lost?: never };

const isRequeueReason = (outcome: ImportResult | ImportFailure | RequeueReason): outcome is RequeueReason =>
  "lost" in outcome || "moved" in outcome;

export class ImportRunner implements Imports {
  readonly #deps: Deps;
  /** Jobs that are being requeued. */
  readonly #requeued = new Set<string>();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Queues a job. If no worker can take it, it stays pending with a note in its log until a worker connects or the job ends. */
  submit({ version_id, job_id, created_at, tags, part }: Parameters<Imports["submit"]>[0]): void {
    const { jobs } = this.#deps;
    const isElsewhere = jobs.isElsewhere(tags);
    if (!isElsewhere && jobs.has(job_id) && !this.#requeued.delete(job_id)) return;
    if (!isElsewhere && jobs.workersFor(tags).length === 0) {
      const message = `No worker with the tags ${describeTags(tags)} is connected; the import waits for one.`;
      this.#makeReport(version_id, {}).addLines("provisioner_daemon", "info", "Waiting", message);
    }
    const run = (signal: AbortSignal, worker: Worker): Promise<void> =>
      this.#runImport({ id: version_id, job_id, tags, worker }, signal);
    const owner = { kind: "import", id: version_id } as const;
    jobs.submit({ id: job_id, created_at, urgency: "person", tags, part, of: owner, run });
  }

  cancel(job_id: string): void {
    this.#deps.jobs.cancel(job_id, "the import was cancelled");
  }

  #makeReport(id: string, run: AttemptRef): JobReport {
    return new JobReport(this.#deps.clock, ({ id: text, logs }) =>
      this.#deps.versions().ask(id, "say", { ...run, id: text, logs }),
    );
  }

  /** Runs a job from start to end. Never rejects. */
  async #runImport(job: Job, signal: AbortSignal): Promise<void> {
    const { id, worker } = job;
    const versions = this.#deps.versions();
    try {
      const { clock, jobs } = this.#deps;
      const started = await beginWithRetries(clock, signal, worker.id === jobs.worker.id, {
        here: () => versions.askHere(id, "startJob", { worker }),
        anywhere: () => versions.ask(id, "startJob", { worker }),
      });
      if (started === "stale") return;
      await this.#work(job, started, signal);
    } catch (error) {
      // The job stays open on disk. The next start of the server resumes it, or its timer ends it.
      if (!isServerStopping(signal)) log("templates").error("cannot report the import of {id}: {error}", { id, error });
    }
  }

  async #work(job: Job, started: Exclude<StartedImport, "stale">, signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    const versions = this.#deps.versions();
    const { id } = job;
    const run = { attempt: started.attempt };
    const report = this.#makeReport(id, run);
    // Downloading a provider can take long without any output.
    const heartbeat = clock.every(HEARTBEAT_MS, () => {
      versions.ask(id, "touchJob", run).catch(() => {});
    });
    const result = await this.#import(job, started, report, signal).finally(() => heartbeat.cancel());
    const outcome = this.#sealSecrets(id, started, result);
    await report.whenSettled();
    if (isServerStopping(signal)) return;
    if (isRequeueReason(outcome) && !signal.aborted) return this.#requeue(job, run, outcome, signal);
    await askWithRetries(clock, signal, () => {
      if (signal.aborted || isRequeueReason(outcome)) return versions.ask(id, "completeJob", run);
      return "error" in outcome
        ? versions.ask(id, "failJob", { ...outcome, ...run })
        : versions.ask(id, "imported", { ...outcome, ...run });
    });
  }

  /** Encrypts the secrets in the manifest. */
  #sealSecrets<T extends object>(
    id: string,
    { sealed_variable_values }: { sealed_variable_values: string },
    outcome: T,
  ): T {
    if (!("manifest" in outcome) || typeof outcome.manifest !== "string") return outcome;
    const { encryption } = this.#deps;
    const values = openVariables(encryption, { id, sealed_variable_values });
    const manifest = sealManifest(encryption, id, JSON.parse(outcome.manifest) as Manifest, values);
    return { ...outcome, manifest: JSON.stringify(manifest) };
  }

  /** Imports the upload. Never rejects. */
  async #import(
    { id, job_id, tags, worker }: Job,
    { file_id, sealed_variable_values, created_by }: Exclude<StartedImport, "stale">,
    report: JobReport,
    signal: AbortSignal,
  ): Promise<ImportResult | ImportFailure | RequeueReason> {
    const { store, blobs, encryption, jobs } = this.#deps;
    try {
      const file = await store.get(findFile({ id: file_id }));
      if (!file) return { error: "The uploaded file was deleted.", error_code: "" };
      const values = openVariables(encryption, { id, sealed_variable_values });
      const archive = { path: await blobs.getPath(file.hash), mimetype: file.mimetype };
      const source = await readTerraformSource(archive).catch(ignoreInvalidArchive);
      if (source) {
        const input = { job_id, worker, tags, archive, source, values, created_by, report };
        return await importTerraform(input, this.#deps.terraform, signal);
      }
      if (worker.id === jobs.worker.id) return await importTemplate(archive.path, archive.mimetype, values, report);
      return { error: "Workers import only Terraform templates.", error_code: "" };
    } catch (error) {
      if (signal.aborted) return { error: "The import was cancelled.", error_code: "" };
      if (error instanceof WorkerLostError) return { lost: error.message };
      if (isRetryable(error)) return { moved: true };
      log("templates").error("the import of {id} failed: {error}", { id, error });
      report.addLines("provisioner_daemon", "error", "Failed", "The import failed because of an internal error.");
      return { error: "The import failed because of an internal error.", error_code: "" };
    }
  }

  /** Requeues the import for any worker. The import fails after too many attempts. */
  async #requeue({ id, job_id }: Job, run: AttemptRef, reason: RequeueReason, signal: AbortSignal): Promise<void> {
    const report = this.#makeReport(id, run);
    if (reason.lost === undefined)
      report.addLines("provisioner_daemon", "warn", "Waiting", "The database did not answer. The import starts again.");
    else report.addLines("provisioner_daemon", "warn", "Handing over", reason.lost);
    await report.whenSettled();
    this.#requeued.add(job_id);
    try {
      const resume = () => this.#deps.versions().ask(id, "resume", { ...reason, ...run });
      await askWithRetries(this.#deps.clock, signal, resume);
    } finally {
      this.#requeued.delete(job_id);
    }
  }
}

/** `id`: the version's ID. */
type Job = { readonly id: string; readonly job_id: string; readonly tags: Tags; readonly worker: Worker };

/** Ignores an invalid archive, because `importTemplate` reports its problems. */
const ignoreInvalidArchive = (error: unknown): undefined => {
  if (error instanceof ArchiveError) return undefined;
  throw error;
};
