// Maps a plan or a state to the data that Slipway stores about a template or workspace. Pure.
import { listPlanInstances, listStateInstances, type PlanDocument, type StateDocument } from "./document.ts";
import { Graph } from "./graph.ts";
import type { MappedParameter, MappedPreset } from "./mapped.ts";
import { toAccounts, toParameters, toPresets, toTags } from "./questions.ts";
import { type MappedResources, mapResources } from "./resources.ts";

export type MappedPlan = MappedResources & {
  readonly parameters: readonly MappedParameter[];
  readonly presets: readonly MappedPreset[];
  readonly external_auth: readonly { readonly id: string; readonly optional: boolean }[];
  readonly tags: Readonly<Record<string, string>>;
  readonly has_ai_task: boolean;
  readonly has_external_agent: boolean;
};

/** Maps a plan with its graph. Throws MappingError for an invalid template. */
export const mapPlan = (plan: PlanDocument, dot: string): MappedPlan => {
  const instances = listPlanInstances(plan);
  const graph = new Graph(dot);
  return {
    ...mapResources(instances, graph),
    parameters: toParameters(instances),
    presets: toPresets(instances),
    external_auth: toAccounts(instances),
    tags: toTags(instances),
    has_ai_task: instances.some(({ mode, type }) => mode === "managed" && type === "coder_ai_task"),
    has_external_agent: graph.has((label) => /(?:^|\.)coder_external_agent\.[^.]+$/.test(label)),
  };
};

/** Maps the state after a build, with IDs and tokens. Throws MappingError. */
export const mapState = (state: StateDocument, dot: string): MappedResources =>
  mapResources(listStateInstances(state), new Graph(dot));
