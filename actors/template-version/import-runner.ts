// Does the work of imports, outside of any mailbox: takes a slot, reads the upload, checks the manifest, and reports what came of it.
// An import can be done again and again, so after a crash it is simply begun anew (rules TP-13 to TP-15).
import type { Clock } from "#base/clock.ts";
import type { Encryption } from "#base/encryption.ts";
import { log } from "#base/log.ts";
import type { Blobs } from "#db/blobs.ts";
import type { Store } from "#db/engine/store.ts";
import { findFile } from "#db/templates/files.ts";
import { openVariables } from "#db/templates/variables.ts";
import { ArchiveError } from "#src/provisioners/archive-entry.ts";
import { readTerraformSource } from "#src/provisioners/terraform/source.ts";
import { askPatiently, stopped } from "../job/patience.ts";
import { JobReport } from "../job/report.ts";
import type { Directory } from "../runtime/directory.ts";
import type { JobQueue } from "../runtime/job-queue.ts";
import type { Imports, StartedImport, TemplateVersionActor } from "./actor.ts";
import { importTemplate } from "./import.ts";
import { importTerraform, type TerraformImports } from "./import-terraform.ts";

type Deps = {
  readonly clock: Clock;
  readonly store: Store;
  readonly blobs: Blobs;
  readonly encryption: Encryption;
  readonly jobs: JobQueue;
  readonly versions: () => Directory<TemplateVersionActor>;
  /** Plans templates of Terraform; undefined where none are run. */
  readonly terraform: TerraformImports | undefined;
};

export class ImportRunner implements Imports {
  readonly #parts: Deps;

  constructor(parts: Deps) {
    this.#parts = parts;
  }

  /** Without a worker that has these tags the job waits until its timer gives it up. */
  submit({ version_id, job_id, created_at, tags }: Parameters<Imports["submit"]>[0]): void {
    const { jobs } = this.#parts;
    if (jobs.holds(job_id) || jobs.workersFor(tags).length === 0) return;
    jobs.submit({ id: job_id, created_at, urgency: "person", run: (signal) => this.#run(version_id, signal) });
  }

  cancel(job_id: string): void {
    this.#parts.jobs.cancel(job_id, "the import was cancelled");
  }

  /** One job from start to end; never rejects. */
  async #run(id: string, signal: AbortSignal): Promise<void> {
    const versions = this.#parts.versions();
    try {
      const { worker } = this.#parts.jobs;
      const started = await askPatiently(this.#parts.clock, signal, () => versions.ask(id, "startJob", { worker }));
      if (started === "stale") return;
      await this.#work(id, started, signal);
    } catch (error) {
      // On disk the job is still open: the next start takes it up, or its timer ends it.
      if (!stopped(signal)) log("templates").error("the import of {id} cannot be reported: {error}", { id, error });
    }
  }

  async #work(
    id: string,
    { file_id, sealed_variable_values, created_by }: Exclude<StartedImport, "stale">,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, store, blobs, encryption } = this.#parts;
    const versions = this.#parts.versions();
    const report = new JobReport(clock, ({ logs }) => versions.ask(id, "say", { logs }));
    const outcome = await (async () => {
      try {
        const file = await store.get(findFile({ id: file_id }));
        if (!file) return { error: "The uploaded file is gone.", error_code: "" };
        const values = openVariables(encryption, { id, sealed_variable_values });
        const archive = { path: await blobs.pathOf(file.hash), mimetype: file.mimetype };
        const source = await readTerraformSource(archive).catch(refusedArchive);
        if (!source) return await importTemplate(archive.path, archive.mimetype, values, report);
        const asked = { id, archive, source, values, created_by, report };
        return await importTerraform(asked, this.#parts.terraform, signal);
      } catch (error) {
        if (signal.aborted) return { error: "The import was cancelled.", error_code: "" };
        log("templates").error("the import of {id} failed: {error}", { id, error });
        report.say("provisioner_daemon", "error", "Failed", "An internal error ended the import.");
        return { error: "An internal error ended the import.", error_code: "" };
      }
    })();
    await report.settled();
    if (stopped(signal)) return;
    await askPatiently(this.#parts.clock, signal, () => {
      if (signal.aborted) return versions.ask(id, "completeJob", {});
      return "error" in outcome ? versions.ask(id, "failJob", outcome) : versions.ask(id, "imported", outcome);
    });
  }
}

/** What is wrong with an archive is told by the import of every other template. */
const refusedArchive = (error: unknown): undefined => {
  if (error instanceof ArchiveError) return undefined;
  throw error;
};
