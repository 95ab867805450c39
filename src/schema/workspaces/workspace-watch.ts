// Wire shapes of the stream of all workspaces that a user can see. Rows are so short that thousands of them fit into one small response.
import { type Static, Type as t } from "@sinclair/typebox";
import { AgentStatus } from "../agents/agent.ts";
import { optionalTime, time, uuid } from "../fields.ts";
import { named, namedObject } from "../shape-names.ts";
import { eventFrames } from "../socket-event.ts";
import { Build, BuildReason, WorkspaceStatus } from "./build.ts";
import { WorkspaceTransition } from "./transition.ts";
import { organizationAndTemplate, Workspace } from "./workspace.ts";

/** An agent of the latest build, as shown in lists. */
export const AgentSummary = namedObject("AgentSummary", {
  id: uuid(),
  name: t.String(),
  status: AgentStatus,
  lifecycle_state: t.String({
    description: "The state that the agent last reported, with the values of `AgentLifecycleState`.",
  }),
  healthy: t.Boolean({
    description: "Whether the agent is connected or still expected to connect, and its start scripts didn't fail.",
  }),
});
export type AgentSummary = Static<typeof AgentSummary>;

/** A workspace as a list row. */
export const WorkspaceSummary = namedObject("WorkspaceSummary", {
  id: uuid(),
  name: t.String(),
  created_at: time(),
  owner_id: uuid(),
  owner_name: t.String({ description: "The username of the workspace's owner." }),
  ...organizationAndTemplate,
  template_version_id: uuid("The ID of the template version that the latest build uses."),
  template_version_name: t.String(),
  template_active_version_id: Workspace.properties.template_active_version_id,
  outdated: Workspace.properties.outdated,
  status: WorkspaceStatus,
  build_id: uuid("The ID of the latest build."),
  build_number: Build.properties.build_number,
  build_created_at: time(),
  transition: WorkspaceTransition,
  reason: BuildReason,
  error: t.Optional(t.String({ description: "Why the latest build failed." })),
  deadline: optionalTime("When autostop stops the workspace; absent if it doesn't."),
  max_deadline: optionalTime("The latest time that the deadline can be moved to."),
  next_start_at: optionalTime("When autostart next starts the workspace."),
  last_used_at: Workspace.properties.last_used_at,
  dormant_at: optionalTime("When the workspace became dormant."),
  deleting_at: optionalTime("When the dormant workspace is deleted."),
  favorite: t.Boolean({ description: "Whether the caller owns the workspace and marked it as a favorite." }),
  shared: t.Boolean({ description: "Whether the workspace is shared." }),
  healthy: Workspace.properties.health.properties.healthy,
  agents: t.Array(AgentSummary, { description: "The agents of the running workspace." }),
});
export type WorkspaceSummary = Static<typeof WorkspaceSummary>;

const id = t.String({
  description: "The cursor for resuming after a disconnect. Send it as the query parameter `after_id`.",
});
const rows = (description: string) => t.Unsafe<readonly WorkspaceSummary[]>(t.Array(WorkspaceSummary, { description }));

/** A message of the stream. */
export const WorkspacesEvent = named(
  "WorkspacesEvent",
  t.Union([
    namedObject("WorkspacesSnapshotEvent", {
      type: t.Literal("snapshot"),
      workspaces: rows(
        "All workspaces, spread over several messages. Previously known workspaces that are missing no longer exist.",
      ),
      more: t.Boolean({ description: "Whether another message of the snapshot follows." }),
      id,
    }),
    namedObject("WorkspacesChangesEvent", {
      type: t.Literal("changes"),
      changed: rows("The current state of the changed workspaces."),
      removed: t.Unsafe<readonly string[]>(
        t.Array(uuid(), { description: "The IDs of workspaces that were deleted or are no longer visible." }),
      ),
      id,
    }),
    namedObject("WorkspacesTemplatesEvent", {
      type: t.Literal("templates"),
      changed: t.Unsafe<readonly string[]>(
        t.Array(uuid(), {
          description: "The IDs of templates that were changed or deleted, or that have a changed version.",
        }),
      ),
    }),
    namedObject(
      "WorkspacesAccessEvent",
      { type: t.Literal("access") },
      {
        description: "The subscriber's roles or memberships changed; a snapshot of what they can see follows.",
      },
    ),
  ]),
);
export type WorkspacesEvent = Static<typeof WorkspacesEvent>;

/** A message of the WebSocket that watches a workspace. */
export const WorkspaceFrame = eventFrames("Workspace", Workspace);
