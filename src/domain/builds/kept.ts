// Which states that lie where they were made are stored by now: a server or a worker that was killed before it heard so asks after its start.
import { log } from "#base/log.ts";
import { openState } from "#db/workspaces/build-state.ts";
import { findBuild } from "#db/workspaces/builds.ts";
import { findJob } from "#db/workspaces/jobs.ts";
import { findWorkspace } from "#db/workspaces/workspaces.ts";
import { isActive } from "#schema/workspaces/job.ts";
import type { KeptBuild } from "#src/provisioners/provisioner.ts";
import { parseSerial } from "#src/provisioners/terraform/session.ts";
import type { DomainContext } from "../context.ts";

type Deps = Pick<DomainContext, "store" | "encryption">;

/** Those that nobody needs: what is stored is as new, or the workspace is deleted. `organization_id`: of others none are told. */
export const storedBuilds = async (
  deps: Deps,
  kept: readonly KeptBuild[],
  organization_id?: string,
): Promise<KeptBuild[]> => {
  const stored: KeptBuild[] = [];
  for (const one of kept) if (await isStored(deps, one, organization_id)) stored.push(one);
  return stored;
};

const isStored = async (
  { store, encryption }: Deps,
  { workspace_id, lineage, serial }: KeptBuild,
  organization_id: string | undefined,
): Promise<boolean> => {
  const workspace = await store.get(findWorkspace({ id: workspace_id }));
  if (!workspace || (organization_id !== undefined && workspace.organization_id !== organization_id)) return false;
  const build = await store.get(findBuild({ id: workspace.latest_build_id }));
  const job = build && (await store.get(findJob({ id: build.job_id })));
  // One that goes on returns to it.
  if (!build || !job || isActive(job)) return false;
  if (workspace.deleted) return true;
  const state = openState(encryption, workspace_id, build.state);
  const known = state === null ? undefined : parseSerial(state);
  return known !== undefined && known.lineage === lineage && known.serial >= serial;
};

/** After a start of the server: what its own provisioners have kept and is stored goes. Never rejects. */
export const dropStored = async (deps: Deps & Pick<DomainContext, "provisioners">): Promise<void> => {
  for (const provisioner of deps.provisioners.values()) {
    try {
      const kept = (await provisioner.kept?.()) ?? [];
      if (kept.length > 0) await provisioner.drop?.(await storedBuilds(deps, kept));
    } catch (error) {
      log("builds").warn("what is kept of earlier builds cannot be looked for: {error}", { error });
    }
  }
};
