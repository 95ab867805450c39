// Builds the row of a new workspace, fork or prebuild.
import { toShard } from "#base/shards.ts";
import type { WorkspaceRow } from "#db/workspaces/workspaces.ts";

type Settings = Pick<
  WorkspaceRow,
  | "name"
  | "organization_id"
  | "template_id"
  | "automatic_updates"
  | "autostart_schedule"
  | "ttl_ms"
  | "owner_id"
  | "task_id"
>;

/** Returns the row. `latest_build_id`: the first build. `home_id`: the ID that determines the workspace's shard, which never changes. */
export const createWorkspaceRow = (
  settings: Settings,
  { id, latest_build_id, now }: Pick<WorkspaceRow, "id" | "latest_build_id"> & { readonly now: number },
  home_id = settings.owner_id,
): WorkspaceRow => ({
  ...settings,
  id,
  part: toShard(home_id),
  favorite: false,
  created_at: now,
  updated_at: now,
  last_used_at: now,
  dormant_at: null,
  deleting_at: null,
  next_start_at: null,
  autostart_no_user_data: false,
  deleted: false,
  trashed_until: null,
  trashed_bytes: null,
  user_acl: {},
  group_acl: {},
  access_lost_at: null,
  latest_build_id,
  status: "pending",
  version: 0,
});
