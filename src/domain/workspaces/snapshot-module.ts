// Inputs of a template module that creates or removes a snapshot: its files, the values of the template's variables, the disks reported by
// the workspace, and what was created before.
import type { ModuleLoads } from "#actors/workspace/snapshot-runner.ts";
import { log } from "#base/log.ts";
import { openDefaults, openVariables } from "#db/templates/variables.ts";
import { findTemplateVersion } from "#db/templates/versions.ts";
import { openState } from "#db/workspaces/build-state.ts";
import { findBuild } from "#db/workspaces/builds.ts";
import { openModuleState, sealModuleState } from "#db/workspaces/snapshot-state.ts";
import { findSnapshot } from "#db/workspaces/snapshots.ts";
import { findWorkspace } from "#db/workspaces/workspaces.ts";
import type { Manifest, ManifestVariable } from "#schema/templates/manifest.ts";
import type { SnapshotRef } from "#src/provisioners/homes.ts";
import { ProvisionError, type SnapshotModule } from "#src/provisioners/provisioner.ts";
import { isBare, parseSerial } from "#src/provisioners/terraform/session.ts";
import { readSnapshotOutput } from "#src/provisioners/terraform/snapshot-output.ts";
import { loadFiles } from "../builds/terraform-work.ts";
import type { DomainContext } from "../context.ts";

type Deps = Pick<DomainContext, "store" | "encryption" | "blobs">;

/** Returns the dependencies for creating and removing snapshots. */
export const makeModuleLoads = (deps: Deps): ModuleLoads => ({
  load: (ref) => loadWork(deps, ref),
  async loadMade(ref) {
    const row = await deps.store.get(findSnapshot({ id: ref.snapshot_id }));
    return row === undefined || row.sealed_state === "" ? undefined : (await loadWork(deps, ref)).work;
  },
});

const loadWork = async (deps: Deps, { workspace_id, snapshot_id }: SnapshotRef): ReturnType<ModuleLoads["load"]> => {
  const { store, encryption } = deps;
  const row = await store.get(findSnapshot({ id: snapshot_id }));
  const created = row && openModuleState(encryption, snapshot_id, row.sealed_state);
  const workspace = await store.get(findWorkspace({ id: workspace_id }));
  const build = workspace && (await store.get(findBuild({ id: workspace.latest_build_id })));
  const template_version_id = created?.template_version_id ?? build?.template_version_id ?? "";
  const version = await store.get(findTemplateVersion({ id: template_version_id }));
  if (!build || !version?.manifest) throw new ProvisionError("The template version of the snapshot no longer exists.");
  const source = created?.source ?? readSnapshotOutput(openState(encryption, workspace_id, build.state));
  if (source === undefined) throw new ProvisionError(NOTHING_TO_COPY);
  const manifest = JSON.parse(version.manifest) as Manifest;
  const { archive } = await loadFiles(deps, version, manifest);
  const declared = openDefaults(encryption, version.id, manifest.variables ?? []);
  const variables = { ...readDefaults(declared), ...openVariables(encryption, version) };
  return {
    work: { archive, declared, variables, source, state: created?.state ?? null },
    seal: (state) => sealModuleState(encryption, snapshot_id, { template_version_id, source, state }),
  };
};

/** Returns the template's defaults, which the module does not know. For variables with a declared type, an empty default means null. */
const readDefaults = (declared: readonly ManifestVariable[]): Record<string, string> =>
  Object.fromEntries(
    declared.flatMap(({ name, declared_type, default: given }) =>
      given === undefined || (given === "" && declared_type !== undefined) ? [] : [[name, String(given)]],
    ),
  );

const NOTHING_TO_COPY =
  "The workspace has no output slipway_snapshot, which says what there is to copy. Start it once with a template version that has one.";

/** Deletes leftovers of snapshots that are stored or no longer exist. Runs after startup and never rejects. */
export const deleteObsoleteModules = async (deps: Deps & Pick<DomainContext, "provisioners">): Promise<void> => {
  for (const { module } of deps.provisioners.values()) {
    if (!module) continue;
    try {
      for (const one of await module.listRetained()) await deleteRetained(deps, module, one);
    } catch (error) {
      log("snapshots").warn("cannot search for leftovers of earlier snapshots: {error}", { error });
    }
  }
};

const deleteRetained = async (
  deps: Deps,
  module: SnapshotModule,
  { snapshot_id, state }: { readonly snapshot_id: string; readonly state: string | undefined },
): Promise<void> => {
  const { store, encryption } = deps;
  const row = await store.get(findSnapshot({ id: snapshot_id }));
  // Creation or removal is still in progress and needs the retained state.
  if (row?.status === "creating" || row?.status === "deleting") return;
  const ref = { workspace_id: row?.workspace_id ?? "", snapshot_id };
  if (state !== undefined && isBare(state)) return module.releaseState(ref);
  const created = row && openModuleState(encryption, snapshot_id, row.sealed_state);
  const [retainedSerial, storedSerial] = [state, created?.state].map((text) =>
    text === undefined ? undefined : parseSerial(text),
  );
  const isSame = retainedSerial !== undefined && storedSerial?.lineage === retainedSerial.lineage;
  if (isSame && storedSerial.serial >= retainedSerial.serial) return module.releaseState(ref);
  if (state !== undefined && created && !isSame) {
    // Another node has created the snapshot in the meantime.
    const { work } = await loadWork(deps, ref);
    await module.remove(ref, { ...work, state }, new AbortController().signal);
    return module.releaseState(ref);
  }
  const text = "the resources of snapshot {snapshot_id} are recorded only in terraform/snapshots of the data directory";
  log("snapshots").error(text, { snapshot_id });
};
