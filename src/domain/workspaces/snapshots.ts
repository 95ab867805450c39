// Snapshots of a workspace: access checks for listing, creating and deleting, and presentation.

import type { SnapshotWork } from "#actors/workspace/decision.ts";
import { toRfc3339 } from "#base/clock.ts";
import { AppError, notFound } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import { findTemplateVersion } from "#db/templates/versions.ts";
import { findBuild } from "#db/workspaces/builds.ts";
import { findJob } from "#db/workspaces/jobs.ts";
import { findSnapshot, listRestoring, listSnapshots, type SnapshotRow } from "#db/workspaces/snapshots.ts";
import type { WorkspaceAccessRow } from "#db/workspaces/workspaces.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import {
  type CreateSnapshot,
  findSnapshotProblem,
  MAX_SNAPSHOTS,
  type Snapshot,
  type Snapshots,
} from "#schema/workspaces/snapshot.ts";
import { isForBuiltIn } from "#src/provisioners/external/tags.ts";
import type { DomainContext } from "../context.ts";

type Keeper = Pick<SnapshotWork, "provisioner"> & {
  readonly unsupported: string;
  /** Whether the server itself can read the files, as home backups require. */
  readonly has_files: boolean;
};

/** Returns what stores the workspace's files, and why it cannot copy them; empty if it can. */
export const findKeeper = async (ctx: DomainContext, { latest_build_id }: WorkspaceAccessRow): Promise<Keeper> => {
  const build = await ctx.store.get(findBuild({ id: latest_build_id }));
  const job = build && (await ctx.store.get(findJob({ id: build.job_id })));
  if (!job) throw notFound();
  const { provisioner } = job;
  const version = await ctx.store.get(findTemplateVersion({ id: build.template_version_id }));
  const keeperName = isForBuiltIn(job.tags) ? provisioner : "external";
  const { homes, module } = ctx.provisioners.get(keeperName) ?? {};
  const canCopy = homes !== undefined || module !== undefined;
  const problem = findSnapshotProblem(keeperName, version) ?? (canCopy ? "" : (findSnapshotProblem("") ?? ""));
  return { provisioner, unsupported: problem, has_files: homes !== undefined };
};

/** Returns all snapshots of a workspace, and how the next one would be created. */
export const readSnapshots = async (ctx: DomainContext, workspace: WorkspaceAccessRow): Promise<Snapshots> => {
  const { id } = workspace;
  const { provisioner, unsupported, has_files } = await findKeeper(ctx, workspace);
  const findMethod = async () => (has_files ? ctx.provisioners.get(provisioner)?.homes?.method(id) : "module");
  const method = unsupported === "" ? await findMethod() : undefined;
  const rows = await ctx.store.all(listSnapshots({ workspace_id: id }));
  const restoring = new Set((await ctx.store.all(listRestoring({ workspace_id: id }))).map((one) => one.id));
  return {
    snapshots: rows.map((row) => presentSnapshot(row, restoring.has(row.id))),
    bytes: rows.reduce((sum, { bytes }) => sum + bytes, 0),
    limit: MAX_SNAPSHOTS,
    ...(method ? { method } : {}),
    unsupported,
  };
};

/**
 * Returns the new snapshot, whose files are being copied. Rejects with 400 when the provisioner does not support snapshots, and with the
 * actor's 409.
 */
export const createSnapshot = async (
  ctx: DomainContext,
  workspace: WorkspaceAccessRow,
  { name = "" }: CreateSnapshot,
  caller: UserCaller,
): Promise<Snapshot> => {
  const { provisioner, unsupported } = await findKeeper(ctx, workspace);
  if (unsupported !== "") throw new AppError("invalid", unsupported);
  const id = uuid();
  const snapshot = { id, name: name.trim(), reason: "manual", created_by: caller.user_id, provisioner } as const;
  await ctx.workspaces.ask(workspace.id, "createSnapshot", snapshot);
  const row = await ctx.store.get(findSnapshot({ id }));
  if (!row) throw notFound();
  return presentSnapshot(row);
};

/** Returns the snapshot with this ID of this workspace. Rejects with 404 otherwise. */
export const findWorkspaceSnapshot = async (
  ctx: DomainContext,
  { id }: WorkspaceAccessRow,
  snapshot: string,
): Promise<SnapshotRow> => {
  const row = await ctx.store.get(findSnapshot({ id: snapshot.toLowerCase() }));
  if (row?.workspace_id !== id) throw notFound();
  return row;
};

/** Presents a snapshot. */
export const presentSnapshot = (row: SnapshotRow, isRestoring = false): Snapshot => ({
  id: row.id,
  workspace_id: row.workspace_id,
  name: row.name,
  reason: row.reason,
  status: isRestoring ? "restoring" : row.status,
  ...(row.method ? { method: row.method } : {}),
  bytes: row.bytes,
  error: row.error,
  created_by: row.created_by,
  created_at: toRfc3339(row.created_at),
  updated_at: toRfc3339(row.updated_at),
});
