// Health findings about prebuilt workspaces: one line for each preset with fewer than configured. Pure.
import type { PrebuildProblem } from "#actors/prebuilds/keeper.ts";
import type { Finding } from "./finding.ts";

const MAX_FINDINGS = 20;

export const checkPrebuilds = (problems: readonly PrebuildProblem[]): Finding[] =>
  problems.slice(0, MAX_FINDINGS).map(({ template_name, preset_name, reason }) => ({
    name: "prebuilds",
    status: "warn",
    detail: `${preset_name === "" ? "a workspace" : `preset ${preset_name}`} of template ${template_name} cannot be prebuilt: ${reason}`,
  }));
