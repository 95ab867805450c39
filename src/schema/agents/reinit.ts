// Wire shape of the event that makes an agent start over (specification "Reinitialization event").
import { type Static, Type as t } from "@sinclair/typebox";
import { namedObject } from "../shape-names.ts";

export const ReinitEvent = namedObject("ReinitEvent", {
  reason: t.Literal("prebuild_claimed", {
    description: "Why the agent must start over: a user has claimed the prebuilt workspace.",
  }),
  workspace_id: t.String({ format: "uuid" }),
  owner_id: t.String({
    format: "uuid",
    description: "The ID of the workspace's current owner. An agent that already has this owner can ignore the event.",
  }),
});
export type ReinitEvent = Static<typeof ReinitEvent>;
