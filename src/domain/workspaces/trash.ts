// The contents of the trash, for users who can restore them.
import { toRfc3339 } from "#base/clock.ts";
import { listTrash } from "#db/workspaces/trash.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { Trash } from "#schema/workspaces/trash.ts";
import { canDeleteWorkspace, canSeeWorkspace } from "../access.ts";
import type { DomainContext } from "../context.ts";

const MAX_SHOWN = 5_000;

/** Returns the deleted workspaces that the caller can restore. */
export const readTrash = async ({ store }: DomainContext, caller: UserCaller): Promise<Trash> => {
  const rows = await store.scan(listTrash({ limit: MAX_SHOWN }));
  const restorable = rows.filter((row) => canSeeWorkspace(caller, row) && canDeleteWorkspace(caller, row));
  return {
    workspaces: restorable.map((row) => ({
      id: row.id,
      name: row.name,
      owner_id: row.owner_id,
      owner_name: row.owner_name,
      template_id: row.template_id,
      template_name: row.template_display_name || row.template_name,
      deleted_at: toRfc3339(row.deleted_at),
      kept_until: toRfc3339(row.trashed_until ?? row.deleted_at),
      bytes: row.trashed_bytes ?? 0,
    })),
    bytes: restorable.reduce((sum, { trashed_bytes }) => sum + (trashed_bytes ?? 0), 0),
  };
};
