// Recovers at server start: continues every open build or fails it with a reason (rule WK-15), and lets provisioners restart workspaces
// that died while the server was down.
import type { Store } from "#db/engine/store.ts";
import type { OwnRows } from "#db/own-rows.ts";
import { listOpenBuilds, listRunning } from "#db/workspaces/builds.ts";
import { listOpenSnapshots } from "#db/workspaces/snapshots.ts";
import type { Directory } from "../runtime/directory.ts";
import type { JobQueue } from "../runtime/job-queue.ts";
import { resumeAll } from "../runtime/resume-work.ts";
import type { WorkspaceActor } from "./actor.ts";
import type { Provisioners } from "./build-runner.ts";
import type { Snapshots } from "./effects.ts";

const PAGE_SIZE = 1_000;

type RecoveryDeps = {
  readonly store: Store;
  readonly workspaces: Directory<WorkspaceActor>;
  readonly jobs: Pick<JobQueue, "ensureQueued">;
};

/**
 * Requeues or ends every open build one by one, so that the oldest build gets the first slot (rule WK-16). Skips jobs that are already
 * queued, because they were requested after the server began to listen.
 */
export const recoverBuilds = async ({ store, workspaces, jobs }: RecoveryDeps, own: OwnRows): Promise<void> => {
  const open = await store.all(listOpenBuilds({}, own));
  await resumeAll(
    open,
    ({ job_id }) => `build job ${job_id}`,
    async ({ workspace_id, job_id, tags }) => {
      if (jobs.ensureQueued({ id: job_id, tags, of: { kind: "build", id: workspace_id } })) return;
      await workspaces.ask(workspace_id, "requeueJob", { job_id, moved: !own.areAll });
    },
  );
};

/** Resumes snapshots that were being created or deleted, and deletes the remains of failed ones. */
export const recoverSnapshots = async (
  { store, snapshots }: { readonly store: Store; readonly snapshots: Snapshots },
  own: OwnRows,
): Promise<void> => {
  for (const { id, status, ...others } of await store.all(listOpenSnapshots({}, own))) {
    const work = { ...others, snapshot_id: id };
    if (status === "creating") snapshots.capture(work);
    else if (status === "deleting") snapshots.discard(work);
    else snapshots.clean(work);
  }
};

/** Tells provisioners which of their workspaces should be running, so that they can restart dead ones. */
export const recoverWorkspaces = async (store: Store, provisioners: Provisioners): Promise<void> => {
  for (const provisioner of provisioners.values()) {
    if (!provisioner.recover) continue;
    let after = "";
    for (;;) {
      const page = await store.scan(listRunning({ provisioner: provisioner.name, after, limit: PAGE_SIZE }));
      if (page.length > 0) await provisioner.recover(page);
      if (page.length < PAGE_SIZE) break;
      after = page.at(-1)?.id ?? "";
    }
  }
};
