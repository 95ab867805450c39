// Builds the server starts automatically for a workspace's schedule: autostart, autostop, dormancy, deletion (facts/platform 2.7).
import type { AutomaticBuilds } from "#actors/workspace/effects.ts";
import { notFound } from "#base/errors.ts";
import { findTemplateEvenDeleted } from "#db/templates/templates.ts";
import { listBuildParameters } from "#db/workspaces/builds.ts";
import { type BuildDeps, loadVersion, planNewBuild, requireUsableManifest } from "./new-build.ts";
import { hidesUserData } from "./user-data.ts";

/** A start uses the template's active version if the template or the workspace requires it; everything else keeps its version. */
export const automaticBuilds = (
  deps: BuildDeps,
  jobs: { workersFor(tags: Readonly<Record<string, string>>): readonly unknown[] },
): AutomaticBuilds => ({
  hasWorker: (tags) => jobs.workersFor(tags).length > 0,
  async plan(workspace, last, input) {
    const { store } = deps;
    const template = await store.get(findTemplateEvenDeleted({ id: workspace.template_id }));
    if (!template) throw notFound();
    const followsActive = template.require_active_version || workspace.automatic_updates === "always";
    const isStart = input.transition === "start";
    const version = await loadVersion(
      store,
      isStart && followsActive ? template.active_version_id : last.template_version_id,
    );
    if (!version) throw notFound();
    const manifest = requireUsableManifest(version, "invalid", input.transition);
    const values = await store.all(listBuildParameters({ build_id: last.id }));
    const previous = Object.fromEntries(values.map(({ name, value }) => [name, value]));
    const { owner_id } = workspace;
    const isHidden = last.no_user_data || (isStart && workspace.autostart_no_user_data);
    const no_user_data = hidesUserData({ by: "server" }, isHidden);
    return planNewBuild(deps, version, manifest, { ...input, owner_id, no_user_data }, previous);
  },
});
