// Wire shape of a resource created by a build (specification "Resource").
import { type Static, Type as t } from "@sinclair/typebox";
import { WorkspaceAgent } from "../agents/agent.ts";
import { iconUrl } from "../fields.ts";
import { namedObject } from "../shape-names.ts";
import { WorkspaceTransition } from "./transition.ts";

export const Resource = namedObject("WorkspaceResource", {
  id: t.String({ format: "uuid" }),
  created_at: t.String({ format: "date-time" }),
  job_id: t.String({ format: "uuid", description: "The ID of the job of the build that created the resource." }),
  workspace_transition: WorkspaceTransition,
  type: t.String({ description: "The type of the resource, as named by the provisioner." }),
  name: t.String(),
  hide: t.Boolean({ description: "Whether the resource can be hidden in user interfaces." }),
  icon: iconUrl,
  agents: t.Array(WorkspaceAgent, { description: "The agents of the resource, by display order, then by name." }),
  metadata: t.Array(
    namedObject("WorkspaceResourceMetadataItem", {
      key: t.String({ description: "The label of the value, as named by the template." }),
      value: t.String({ description: "The value; empty if it is sensitive." }),
      sensitive: t.Boolean({ description: "Whether the value is secret and never shown." }),
    }),
    { description: "Values that user interfaces show with the resource." },
  ),
  daily_cost: t.Integer({ description: "The daily cost of the resource, in credits of the owner's quota." }),
});
export type Resource = Static<typeof Resource>;
