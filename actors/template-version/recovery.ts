// After a start of the server: uploads half done are removed, and imports that had not ended go on (rules TP-4, TP-16).
// Nobody waits for the event loop yet, so what is read here needs no reader Worker.
import type { Blobs } from "#db/blobs.ts";
import type { Store } from "#db/engine/store.ts";
import { listOpenDryRuns } from "#db/templates/dry-runs.ts";
import { listHashes } from "#db/templates/files.ts";
import { listOpenImports } from "#db/templates/versions.ts";
import type { Directory } from "../runtime/directory.ts";
import type { JobQueue } from "../runtime/job-queue.ts";
import type { TemplateVersionActor } from "./actor.ts";
import type { DryRunActor } from "./dry-run-actor.ts";

/** Call before uploads are taken. */
export const recoverBlobs = async (store: Store, blobs: Blobs): Promise<void> => {
  const rows = await store.all(listHashes());
  await blobs.recover(new Set(rows.map(({ hash }) => hash)));
};

/** What was asked for since the server listens is held already, and stays as it is. */
type Held = Pick<JobQueue, "holds">;

/** Takes up open imports, the oldest first. */
export const recoverImports = async (
  store: Store,
  versions: Directory<TemplateVersionActor>,
  jobs: Held,
): Promise<void> => {
  for (const { id, job_id } of await store.all(listOpenImports())) {
    if (!jobs.holds(job_id)) await versions.ask(id, "resume", {});
  }
};

/** Takes up open dry runs, the oldest first. */
export const recoverDryRuns = async (store: Store, dryRuns: Directory<DryRunActor>, jobs: Held): Promise<void> => {
  for (const { id } of await store.all(listOpenDryRuns())) {
    if (!jobs.holds(id)) await dryRuns.ask(id, "requeueJob", {});
  }
};
