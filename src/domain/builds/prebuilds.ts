// Plans the first build of a prebuilt workspace, with its preset's values and defaults for everything else.
import type { KeeperDeps } from "#actors/prebuilds/keeper.ts";
import { notFound } from "#base/errors.ts";
import { PREBUILDS_USER_ID } from "#schema/workspaces/prebuilds.ts";
import { type BuildDeps, loadVersion, planNewBuild, requireUsableManifest } from "./new-build.ts";

/** Rejects with 400 when a parameter has neither a preset value nor a default. */
export const planFirstPrebuild =
  (deps: BuildDeps): KeeperDeps["firstBuild"] =>
  async (template, preset_id) => {
    const version = await loadVersion(deps.store, template.active_version_id);
    if (!version) throw notFound();
    return planNewBuild(deps, version, requireUsableManifest(version, "invalid"), {
      template_version_preset_id: preset_id,
      rich_parameter_values: [],
      transition: "start",
      reason: "initiator",
      initiator_id: PREBUILDS_USER_ID,
      owner_id: PREBUILDS_USER_ID,
      // The workspace has no owner yet. Its AI token would charge no person's budget, and all prebuilt workspaces would share one SSH key.
      no_user_data: true,
    });
  };
