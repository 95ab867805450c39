// Recovers at server start: deletes incomplete uploads, and resumes open imports and dry runs (rules TP-4, TP-16). The reads may block the
// event loop, because the server does not accept requests yet.
import type { Blobs } from "#db/blobs.ts";
import type { Store } from "#db/engine/store.ts";
import type { OwnRows } from "#db/own-rows.ts";
import { listOpenDryRuns } from "#db/templates/dry-runs.ts";
import { listHashes } from "#db/templates/files.ts";
import { listOpenImports } from "#db/templates/versions.ts";
import type { Directory } from "../runtime/directory.ts";
import type { JobQueue } from "../runtime/job-queue.ts";
import { resumeAll } from "../runtime/resume-work.ts";
import type { TemplateVersionActor } from "./actor.ts";
import type { DryRunActor } from "./dry-run-actor.ts";

/** Deletes incomplete uploads. Must run before uploads are accepted. `isAlone`: no other node accepts uploads at the same time. */
export const recoverBlobs = async (store: Store, blobs: Blobs, isAlone: boolean): Promise<void> => {
  const rows = await store.all(listHashes());
  await blobs.recover(new Set(rows.map(({ hash }) => hash)), isAlone);
};

/** The queue already has jobs that were requested after the server began to listen. They are skipped. */
type QueuedJobs = Pick<JobQueue, "ensureQueued">;

type ImportDeps = {
  readonly store: Store;
  readonly versions: Directory<TemplateVersionActor>;
  readonly jobs: QueuedJobs;
};

/** Resumes the open imports that this node owns, oldest first. */
export const recoverImports = async ({ store, versions, jobs }: ImportDeps, own: OwnRows): Promise<void> =>
  resumeAll(
    await store.all(listOpenImports({}, own)),
    ({ id }) => `the import of ${id}`,
    async ({ id, job_id, tags }) => {
      if (!jobs.ensureQueued({ id: job_id, tags, of: { kind: "import", id } }))
        await versions.ask(id, "resume", { moved: !own.areAll });
    },
  );

type DryRunDeps = { readonly store: Store; readonly dryRuns: Directory<DryRunActor>; readonly jobs: QueuedJobs };

/** Resumes the open dry runs that this node owns, oldest first. */
export const recoverDryRuns = async ({ store, dryRuns, jobs }: DryRunDeps, own: OwnRows): Promise<void> =>
  resumeAll(
    await store.all(listOpenDryRuns({}, own)),
    ({ id }) => `dry run ${id}`,
    async ({ id, tags }) => {
      if (!jobs.ensureQueued({ id, tags, of: { kind: "dry_run", id } }))
        await dryRuns.ask(id, "requeueJob", { moved: !own.areAll });
    },
  );
