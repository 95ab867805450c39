// Wire shapes of the stream of all workspaces a user can see: rows short enough that thousands fit into one small response.
import { type Static, Type as t } from "@sinclair/typebox";
import { AgentStatus } from "../agents/agent.ts";
import { optionalTime, time, uuid } from "../fields.ts";
import { named, namedObject } from "../shape-names.ts";
import { eventFrames } from "../socket-event.ts";
import { BuildReason, WorkspaceStatus } from "./build.ts";
import { WorkspaceTransition } from "./transition.ts";
import { belonging, Workspace } from "./workspace.ts";

/** An agent of the latest build, as shown in lists. */
export const AgentSummary = namedObject("AgentSummary", {
  id: uuid(),
  name: t.String(),
  status: AgentStatus,
  lifecycle_state: t.String(),
  healthy: t.Boolean(),
});
export type AgentSummary = Static<typeof AgentSummary>;

/** A workspace as a list row. */
export const WorkspaceSummary = namedObject("WorkspaceSummary", {
  id: uuid(),
  name: t.String(),
  created_at: time(),
  owner_id: uuid(),
  owner_name: t.String(),
  ...belonging,
  template_version_id: uuid(),
  template_version_name: t.String(),
  template_active_version_id: uuid(),
  outdated: t.Boolean(),
  status: WorkspaceStatus,
  build_id: uuid(),
  build_number: t.Integer(),
  build_created_at: time(),
  transition: WorkspaceTransition,
  reason: BuildReason,
  error: t.Optional(t.String({ description: "Why the latest build failed." })),
  deadline: optionalTime("When autostop stops the workspace; absent if it doesn't."),
  max_deadline: optionalTime("The latest time that the deadline can be moved to."),
  next_start_at: optionalTime("When autostart next starts the workspace."),
  last_used_at: time(),
  dormant_at: optionalTime("When the workspace became dormant."),
  deleting_at: optionalTime("When the dormant workspace is deleted."),
  favorite: t.Boolean({ description: "Whether the caller owns the workspace and marked it as a favorite." }),
  shared: t.Boolean({ description: "Whether the workspace is shared." }),
  healthy: t.Boolean(),
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
