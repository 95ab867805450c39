// Wire shape of a resource created by a build (specification "Resource").
import { type Static, Type as t } from "@sinclair/typebox";
import { WorkspaceAgent } from "../agents/agent.ts";
import { namedObject } from "../shape-names.ts";
import { WorkspaceTransition } from "./transition.ts";

export const Resource = namedObject("WorkspaceResource", {
  id: t.String({ format: "uuid" }),
  created_at: t.String({ format: "date-time" }),
  job_id: t.String({ format: "uuid" }),
  workspace_transition: WorkspaceTransition,
  type: t.String({ description: "The type of the resource, as named by the provisioner." }),
  name: t.String(),
  hide: t.Boolean({ description: "Whether the resource can be hidden in user interfaces." }),
  icon: t.String(),
  agents: t.Array(WorkspaceAgent, { description: "The agents of the resource, by display order, then by name." }),
  metadata: t.Array(
    t.Object({
      key: t.String(),
      value: t.String({ description: "The value; empty if it is sensitive." }),
      sensitive: t.Boolean(),
    }),
  ),
  daily_cost: t.Integer(),
});
export type Resource = Static<typeof Resource>;
