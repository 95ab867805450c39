// The transition of a workspace that a build performs.

import { oneOf } from "../one-of.ts";
import { named } from "../shape-names.ts";

export const TRANSITIONS = ["start", "stop", "delete"] as const;
export type Transition = (typeof TRANSITIONS)[number];

export const WorkspaceTransition = named(
  "WorkspaceTransition",
  oneOf(TRANSITIONS, "What the build does with the workspace."),
);
