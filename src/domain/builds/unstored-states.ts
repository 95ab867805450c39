// Finds provisioner states that a server or worker still keeps although they are stored in the database by now. It asks after its restart,
// because it may have been killed before it got the confirmation.
import { log } from "#base/log.ts";
import { openState } from "#db/workspaces/build-state.ts";
import { findBuild } from "#db/workspaces/builds.ts";
import { findJob } from "#db/workspaces/jobs.ts";
import { findWorkspace } from "#db/workspaces/workspaces.ts";
import { isActive } from "#schema/workspaces/job.ts";
import type { RetainedBuild } from "#src/provisioners/provisioner.ts";
import { parseSerial } from "#src/provisioners/terraform/session.ts";
import type { DomainContext } from "../context.ts";

type Deps = Pick<DomainContext, "store" | "encryption">;

/**
 * Returns the kept states that are obsolete: the stored state is at least as new, or the workspace is deleted. With `organization_id`, only
 * states of that organization.
 */
export const findObsoleteStates = async (
  deps: Deps,
  kept: readonly RetainedBuild[],
  organization_id?: string,
): Promise<RetainedBuild[]> => {
  const obsolete: RetainedBuild[] = [];
  for (const one of kept) if (await isStored(deps, one, organization_id)) obsolete.push(one);
  return obsolete;
};

const isStored = async (
  { store, encryption }: Deps,
  { workspace_id, lineage, serial }: RetainedBuild,
  organization_id: string | undefined,
): Promise<boolean> => {
  const workspace = await store.get(findWorkspace({ id: workspace_id }));
  if (!workspace || (organization_id !== undefined && workspace.organization_id !== organization_id)) return false;
  const build = await store.get(findBuild({ id: workspace.latest_build_id }));
  const job = build && (await store.get(findJob({ id: build.job_id })));
  // The build is still running and needs the kept state.
  if (!build || !job || isActive(job)) return false;
  if (workspace.deleted) return true;
  const state = openState(encryption, workspace_id, build.state);
  const storedSerial = state === null ? undefined : parseSerial(state);
  return storedSerial !== undefined && storedSerial.lineage === lineage && storedSerial.serial >= serial;
};

/** Deletes kept states of the server's own provisioners that are stored by now. Runs after startup and never rejects. */
export const deleteObsoleteStates = async (deps: Deps & Pick<DomainContext, "provisioners">): Promise<void> => {
  for (const provisioner of deps.provisioners.values()) {
    try {
      const kept = (await provisioner.listRetained?.()) ?? [];
      if (kept.length > 0) await provisioner.dropRetained?.(await findObsoleteStates(deps, kept));
    } catch (error) {
      log("builds").warn("cannot search for leftovers of earlier builds: {error}", { error });
    }
  }
};
