// After a start of the server: every build that was open goes on or has failed with a reason (rule WK-15), and workspaces that died
// in the meantime are started again by their provisioner.
import type { PartNumbers } from "#base/parts.ts";
import type { Store } from "#db/engine/store.ts";
import { listOpenBuilds, listRunning } from "#db/workspaces/builds.ts";
import { listOpenSnapshots } from "#db/workspaces/snapshots.ts";
import type { Directory } from "../runtime/directory.ts";
import type { JobQueue } from "../runtime/job-queue.ts";
import { takeUp } from "../runtime/take-up.ts";
import type { WorkspaceActor } from "./actor.ts";
import type { Provisioners } from "./build-runner.ts";
import type { Snapshots } from "./effects.ts";

const PAGE = 1_000;

type Builds = {
  readonly store: Store;
  readonly workspaces: Directory<WorkspaceActor>;
  readonly jobs: Pick<JobQueue, "takesUp">;
};

/**
 * Puts every open build back into the queue, or ends it; one after the other, so that the oldest gets the first slot (WK-16). What was asked
 * for since the server listens is in the queue already and stays as it is. Those of these parts; undefined: of all.
 */
export const recoverBuilds = async ({ store, workspaces, jobs }: Builds, parts?: PartNumbers): Promise<void> => {
  const open = await store.all(listOpenBuilds(parts));
  await takeUp(
    open,
    ({ job_id }) => `build job ${job_id}`,
    async ({ workspace_id, job_id, tags }) => {
      if (jobs.takesUp({ id: job_id, tags, of: { kind: "build", id: workspace_id } })) return;
      await workspaces.ask(workspace_id, "requeueJob", { job_id, moved: parts !== undefined });
    },
  );
};

/**
 * Resumes snapshots that were being created or deleted, and removes the remains of failed ones. Those of these parts;
 * undefined: of all.
 */
export const recoverSnapshots = async (
  { store, snapshots }: { readonly store: Store; readonly snapshots: Snapshots },
  parts?: PartNumbers,
): Promise<void> => {
  for (const { id, status, ...rest } of await store.all(listOpenSnapshots(parts))) {
    const work = { ...rest, snapshot_id: id };
    if (status === "creating") snapshots.capture(work);
    else if (status === "deleting") snapshots.discard(work);
    else snapshots.clean(work);
  }
};

/** Tells each provisioner that wants to know which of its workspaces should be running. */
export const recoverWorkspaces = async (store: Store, provisioners: Provisioners): Promise<void> => {
  for (const provisioner of provisioners.values()) {
    if (!provisioner.recover) continue;
    let after = "";
    for (;;) {
      const page = await store.scan(listRunning({ provisioner: provisioner.name, after, limit: PAGE }));
      if (page.length > 0) await provisioner.recover(page);
      if (page.length < PAGE) break;
      after = page.at(-1)?.id ?? "";
    }
  }
};
