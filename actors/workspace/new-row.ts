// The row of a workspace that is about to be made. Used where a person makes one, and where one begins as the copy of another.
import { partOf } from "#base/parts.ts";
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

/** Unused, and shared with no other user. `latest_build_id` is its first build. */
export const newRow = (
  settings: Settings,
  { id, latest_build_id, now }: Pick<WorkspaceRow, "id" | "latest_build_id"> & { readonly now: number },
): WorkspaceRow => ({
  ...settings,
  id,
  part: partOf(settings.owner_id),
  favorite: false,
  created_at: now,
  updated_at: now,
  last_used_at: now,
  dormant_at: null,
  deleting_at: null,
  next_start_at: null,
  deleted: false,
  trashed_until: null,
  trashed_bytes: null,
  user_acl: {},
  group_acl: {},
  latest_build_id,
  status: "pending",
  version: 0,
});
