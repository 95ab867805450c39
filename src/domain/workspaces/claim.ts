// Creates a workspace by claiming a prebuilt one for its preset (facts/platform 2.8, rules PB-7 to PB-12).
import type { NewBuild } from "#actors/workspace/decision.ts";
import { computeQuota } from "#actors/workspace/quota.ts";
import type { Statement } from "#db/engine/sql.ts";
import { listReadyPrebuilds } from "#db/workspaces/prebuilds.ts";
import type { WorkspaceRow } from "#db/workspaces/workspaces.ts";
import type { Manifest, ManifestPreset } from "#schema/templates/manifest.ts";
import { hasPrebuilds } from "#schema/workspaces/prebuilds.ts";
import { resolveParameters } from "#src/provisioners/parameters.ts";
import { toPresetId } from "#src/provisioners/presets.ts";
import type { DomainContext } from "../context.ts";

/**
 * Returns the ID of the claimed workspace; undefined when none is ready, in which case a new one is created. Rejects with 409 when the name
 * is taken.
 */
export const claimPrebuild = async (
  { store, workspaces }: Pick<DomainContext, "store" | "workspaces">,
  manifest: Manifest,
  workspace: WorkspaceRow,
  requested: NewBuild,
  makeExtraWrites: (workspace_id: string) => readonly Statement[],
): Promise<string | undefined> => {
  const version_id = requested.template_version_id;
  const preset_id = requested.template_version_preset_id ?? findMatchingPreset(manifest, requested);
  if (preset_id === undefined) return undefined;
  const build = { ...requested, template_version_preset_id: preset_id };
  const { owner_id, name, autostart_schedule, ttl_ms, automatic_updates, task_id } = workspace;
  const claim = { owner_id, name, autostart_schedule, ttl_ms, automatic_updates, task_id, build };
  const { consumed, budget } = await computeQuota(store, workspace);
  for (const { id, daily_cost } of await store.all(listReadyPrebuilds({ version_id, preset_id }))) {
    // A claimed workspace already runs, so its first build could no longer reject the cost.
    if (budget >= 0 && consumed + daily_cost > budget) continue;
    // Another claim was faster; try the next one.
    if ((await workspaces.ask(id, "claim", { ...claim, beside: makeExtraWrites(id) })) === "done") return id;
  }
  return undefined;
};

/** Returns the preset whose values were chosen without naming it, because the build is the same. */
const findMatchingPreset = (manifest: Manifest, { template_version_id, parameters }: NewBuild): string | undefined => {
  const isSame = (preset: ManifestPreset): boolean => {
    try {
      const values = resolveParameters({ manifest, given: [], preset });
      return parameters.every(({ name, value }) => values[name] === value);
    } catch {
      // The preset leaves a parameter open, so nothing can be prebuilt for it.
      return false;
    }
  };
  const found = manifest.presets?.find((preset) => hasPrebuilds(preset) && isSame(preset));
  return found && toPresetId(template_version_id, found.name);
};
