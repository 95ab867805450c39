// Snapshots of workspaces: their rows, and the builds that restore them.
import { and, asc, desc, eq, inArray, isNull, sql } from "drizzle-orm";
import { build, deleteBy, eqParam, findBy, insertInto, query, statement, updateBy } from "../engine/sql.ts";
import { forOwnRows, isOwn } from "../own-rows.ts";
import { jobs } from "../schema/jobs.ts";
import { workspace_snapshots } from "../schema/snapshots.ts";
import { workspace_builds, workspaces } from "../schema/workspaces.ts";

export type SnapshotRow = typeof workspace_snapshots.$inferSelect;

export const findSnapshot = findBy(workspace_snapshots, workspace_snapshots.id);

/** All snapshots of a workspace, newest first. Parameters: {workspace_id}. */
export const listSnapshots = query(
  build
    .select()
    .from(workspace_snapshots)
    .where(eqParam(workspace_snapshots.workspace_id))
    .orderBy(desc(workspace_snapshots.created_at), desc(workspace_snapshots.id)),
);

/** Snapshots of a workspace that builds are restoring now. Parameters: {workspace_id}. */
export const listRestoring = query(
  build
    .selectDistinct({ id: workspace_snapshots.id })
    .from(workspace_snapshots)
    .innerJoin(workspace_builds, eq(workspace_builds.restored_snapshot_id, workspace_snapshots.id))
    .innerJoin(jobs, eq(jobs.id, workspace_builds.job_id))
    .where(and(eqParam(workspace_snapshots.workspace_id), isNull(jobs.completed_at))),
);

const selectOpen = () =>
  build
    .select({
      id: workspace_snapshots.id,
      workspace_id: workspace_snapshots.workspace_id,
      owner_id: workspaces.owner_id,
      status: workspace_snapshots.status,
      provisioner: workspace_snapshots.provisioner,
      home_backup_id: workspace_snapshots.home_backup_id,
      part: workspaces.part,
    })
    .from(workspace_snapshots)
    .innerJoin(workspaces, eq(workspaces.id, workspace_snapshots.workspace_id));
const isOpen = inArray(workspace_snapshots.status, ["creating", "deleting", "failed"]);

/** Snapshots that are being created or deleted, or that failed and may have left files, oldest first; resumed at startup. */
export const listOpenSnapshots = forOwnRows(
  query(selectOpen().where(isOpen).orderBy(asc(workspace_snapshots.created_at))),
  query(
    selectOpen()
      .where(and(isOpen, isOwn(workspaces.part)))
      .orderBy(asc(workspace_snapshots.created_at)),
  ),
);

/** A guard for a build that restores the snapshot: rejects the batch as stale when it is no longer ready. Parameters: {id}. */
export const guardSnapshot = statement<{ id: string }>(
  build
    .update(workspace_snapshots)
    .set({ status: sql`${workspace_snapshots.status}` })
    .where(and(eqParam(workspace_snapshots.id), eq(workspace_snapshots.status, "ready"))),
  { expect: 1 },
);

export const insertSnapshot = insertInto(workspace_snapshots);
export const updateSnapshot = updateBy(workspace_snapshots, workspace_snapshots.id);
export const deleteSnapshot = deleteBy(workspace_snapshots, workspace_snapshots.id);
/**
 * Deletes the rows of snapshots whose files are deleted with the workspace. Snapshots that a module of the template created remain, because
 * they are deleted one by one. Parameters: {workspace_id}.
 */
export const deleteFilesOfSnapshots = statement<{ workspace_id: string }>(
  build
    .delete(workspace_snapshots)
    .where(and(eqParam(workspace_snapshots.workspace_id), eq(workspace_snapshots.sealed_state, ""))),
);
