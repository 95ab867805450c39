// Wire shapes for starting a stopped workspace when somebody connects: who can start it, and the request.
import { type Static, Type as t } from "@sinclair/typebox";
import { oneOf } from "../one-of.ts";
import { named } from "../shape-names.ts";
import { strictObject } from "../strict.ts";
import { CALLER_REASONS } from "./build.ts";

/** Who can start it. `people`: users who can start the workspace anyway. `public`: also visitors, who can only open its apps. */
export const WAKE_LEVELS = ["off", "people", "public"] as const;
export type WakeLevel = (typeof WAKE_LEVELS)[number];

export const wakeLevel = (description: string) => oneOf(WAKE_LEVELS, description);

export const WakeWorkspace = named(
  "WakeWorkspaceRequest",
  strictObject({ reason: t.Optional(oneOf(CALLER_REASONS, "What connects to the workspace. Shown with the build.")) }),
);
export type WakeWorkspace = Static<typeof WakeWorkspace>;
