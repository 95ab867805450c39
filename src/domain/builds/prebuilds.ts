// The first build of a workspace that is kept ready, with the values of its preset and the defaults of everything else.
import type { KeeperDeps } from "#actors/prebuilds/keeper.ts";
import { notFound } from "#base/errors.ts";
import { PREBUILDS_USER_ID } from "#schema/workspaces/prebuilds.ts";
import { type BuildDeps, loadVersion, newBuild, usableManifest } from "./new-build.ts";

/** 400 when the preset leaves a parameter open that has no default. */
export const firstPrebuild =
  (deps: BuildDeps): KeeperDeps["firstBuild"] =>
  async (template, preset_id) => {
    const version = await loadVersion(deps.store, template.active_version_id);
    if (!version) throw notFound();
    return newBuild(deps, version, usableManifest(version, "invalid"), {
      template_version_preset_id: preset_id,
      rich_parameter_values: [],
      transition: "start",
      reason: "initiator",
      initiator_id: PREBUILDS_USER_ID,
      owner_id: PREBUILDS_USER_ID,
      // It belongs to no person yet: no AI token that no budget of a person counts, and no key that all of these share.
      no_user_data: true,
    });
  };
