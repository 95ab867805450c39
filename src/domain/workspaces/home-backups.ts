// Home backups of a workspace: listing, creating, fetching and deleting, and the state of all workspaces' backups.
import { NOT_CONFIGURED, toPendingBackup } from "#actors/home-backups/keeper.ts";
import { findProblem, isCounted } from "#actors/home-backups/status.ts";
import { toRfc3339 } from "#base/clock.ts";
import { AppError, conflict, notFound } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import { CommitError } from "#db/engine/store.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import {
  findHome,
  findHomeBackup,
  type HomeBackupRow,
  insertHomeBackup,
  listFetchedNow,
  listHomeBackups,
  listHomesWithBackups,
  updateHomeBackup,
} from "#db/workspaces/home-backups.ts";
import { findSnapshot } from "#db/workspaces/snapshots.ts";
import type { WorkspaceAccessRow } from "#db/workspaces/workspaces.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { HomeBackup, HomeBackupReport, HomeBackups } from "#schema/workspaces/home-backup.ts";
import type { Snapshot } from "#schema/workspaces/snapshot.ts";
import { HomeBackupError } from "#src/home-backups/error.ts";
import type { HomeBackupStore } from "#src/home-backups/store.ts";
import type { DomainContext } from "../context.ts";
import { findKeeper, presentSnapshot } from "./snapshots.ts";

const MAX_LISTED = 200;

/** Returns why home backups are not available; empty if they are. The server cannot read disks that only a template can copy. */
const explainNoBackups = ({ unsupported, has_files, provisioner }: Awaited<ReturnType<typeof findKeeper>>): string => {
  if (provisioner === "terraform" && !has_files) return "Home backups are not available for Terraform templates.";
  return unsupported.replace(/^Snapshots/, "Home backups");
};

/** Returns all home backups of a workspace, and where the next one is stored. */
export const readHomeBackups = async (ctx: DomainContext, workspace: WorkspaceAccessRow): Promise<HomeBackups> => {
  const unsupported = explainNoBackups(await findKeeper(ctx, workspace));
  const rows = await ctx.store.all(listHomeBackups({ workspace_id: workspace.id }));
  const { home_backup_interval: interval } = ctx.config;
  return {
    backups: rows.map(presentHomeBackup),
    bytes: rows.reduce((sum, { added_bytes }) => sum + added_bytes, 0),
    ...(interval === undefined ? {} : { interval_ms: interval }),
    location: ctx.homeBackupStore?.storage.url ?? "",
    unsupported: unsupported || (ctx.homeBackupStore ? "" : NOT_CONFIGURED),
  };
};

/**
 * Creates a home backup in the background. Throws 400 if the workspace cannot be backed up, and 409 while another backup is being created.
 */
export const createHomeBackup = async (
  ctx: DomainContext,
  workspace: WorkspaceAccessRow,
  caller: UserCaller,
): Promise<HomeBackup> => {
  const { homeBackupStore, store, clock } = ctx;
  const unsupported = explainNoBackups(await findKeeper(ctx, workspace));
  if (unsupported !== "") throw new AppError("invalid", unsupported);
  const backups = requireSetUp(homeBackupStore);
  const home = await store.get(findHome({ id: workspace.id }));
  if (!home) throw notFound();
  const now = clock.now();
  const row = toPendingBackup(workspace.id, backups.storage.url, now);
  const entry = insertAudit({
    now,
    action: "create",
    resource_type: "workspace_snapshot",
    resource_id: row.id,
    target: workspace.name,
    organization_id: workspace.organization_id,
    workspace_id: workspace.id,
    after: { reason: "backup" },
    additional: { workspace_name: workspace.name, workspace_id: workspace.id, user_id: caller.user_id },
  });
  try {
    await store.commit([insertHomeBackup(row), entry], { of: home.part });
  } catch (error) {
    if (!(error instanceof CommitError) || error.reason !== "constraint") throw error;
    throw conflict("A backup of the workspace is being created. Try again when it is ready.");
  }
  ctx.homeBackups.sweep();
  return presentHomeBackup(row);
};

/** Returns the home backup with this ID of this workspace. Throws 404. */
export const loadHomeBackup = async (
  ctx: DomainContext,
  { id }: { readonly id: string },
  backup: string,
): Promise<HomeBackupRow> => {
  const row = await ctx.store.get(findHomeBackup({ id: backup.toLowerCase() }));
  if (row?.workspace_id !== id) throw notFound();
  return row;
};

/** Rejects a backup whose files are not available: 409 when it is not ready or is stored elsewhere. */
export const requireFetchable = (ctx: DomainContext, row: HomeBackupRow): void => {
  const { storage } = requireSetUp(ctx.homeBackupStore);
  if (row.status !== "ready") throw conflict(`The backup is ${row.status}; only a ready one can be restored.`);
  if (row.location !== storage.url) {
    throw conflict(`The backup is stored in ${row.location}, but the server is configured to use ${storage.url}.`);
  }
};

/** Returns the snapshot that gets the files of the backup. Throws 409 during another snapshot or a build. */
export const fetchHomeBackup = async (
  ctx: DomainContext,
  workspace: WorkspaceAccessRow,
  row: HomeBackupRow,
  caller: UserCaller,
): Promise<Snapshot> => {
  const { provisioner, unsupported } = await findKeeper(ctx, workspace);
  if (unsupported !== "") throw new AppError("invalid", unsupported);
  requireFetchable(ctx, row);
  const id = uuid();
  const name = `Backup of ${toRfc3339(row.created_at).slice(0, 16).replace("T", " ")} UTC`;
  const base = { name, reason: "fetched", created_by: caller.user_id, provisioner, home_backup_id: row.id } as const;
  await ctx.workspaces.ask(workspace.id, "createSnapshot", { id, ...base });
  const snapshot = await ctx.store.get(findSnapshot({ id }));
  if (!snapshot) throw notFound();
  return presentSnapshot(snapshot);
};

/** Deletes a backup in the background. Throws 409 while it is being created or fetched. */
export const deleteHomeBackup = async (
  ctx: DomainContext,
  { id, name, organization_id }: WorkspaceAccessRow,
  row: HomeBackupRow,
): Promise<void> => {
  if (row.status === "deleting") return;
  const isFetched = (await ctx.store.all(listFetchedNow({}))).some((one) => one.id === row.id);
  if (row.status === "creating" || isFetched) {
    throw conflict(`The backup is being ${isFetched ? "fetched" : "made"}. Try again when it is done.`);
  }
  const home = await ctx.store.get(findHome({ id }));
  if (!home) throw notFound();
  const entry = insertAudit({
    now: ctx.clock.now(),
    action: "delete",
    resource_type: "workspace_snapshot",
    resource_id: row.id,
    target: name,
    organization_id,
    workspace_id: id,
    before: { reason: "backup" },
    additional: { workspace_name: name, workspace_id: id },
  });
  await ctx.store.commit([updateHomeBackup(row.id, { status: "deleting" }), entry], { of: home.part });
  ctx.homeBackups.sweep();
};

type ReportDeps = Pick<DomainContext, "config" | "store" | "clock" | "homeBackupStore">;

/** Returns the state of all workspaces' backups, problems first. */
export const reportHomeBackups = async (ctx: ReportDeps): Promise<HomeBackupReport> => {
  const { config, homeBackupStore, clock } = ctx;
  const { home_backup_interval: interval, home_backup_keep_daily, home_backup_keep_weekly } = config;
  const rows = await ctx.store.scan(listHomesWithBackups({}));
  const shown = rows.filter(isCounted).map((row) => ({ row, problem: findProblem(row, interval, clock.now()) }));
  const worstFirst = shown.toSorted(
    (a, b) =>
      Number(a.problem === "") - Number(b.problem === "") || a.row.workspace_name.localeCompare(b.row.workspace_name),
  );
  let problem = homeBackupStore ? "" : NOT_CONFIGURED;
  const engine = await homeBackupStore?.chooseEngine().catch((error: unknown) => {
    if (!(error instanceof HomeBackupError)) throw error;
    problem = error.message;
    return undefined;
  });
  return {
    location: homeBackupStore?.storage.url ?? "",
    ...(interval === undefined ? {} : { interval_ms: interval }),
    ...(engine ? { engine } : {}),
    keep_daily: home_backup_keep_daily,
    keep_weekly: home_backup_keep_weekly,
    problem,
    bytes: shown.reduce((sum, { row }) => sum + row.bytes, 0),
    backups: shown.reduce((sum, { row }) => sum + row.backups, 0),
    workspaces: worstFirst.slice(0, MAX_LISTED).map(({ row, problem }) => ({
      workspace_id: row.workspace_id,
      workspace_name: row.workspace_name,
      owner_name: row.owner_name,
      backups: row.backups,
      bytes: row.bytes,
      ...(row.last_at ? { last_at: toRfc3339(row.last_at) } : {}),
      problem,
    })),
  };
};

const requireSetUp = (backups: HomeBackupStore | undefined): HomeBackupStore => {
  if (backups) return backups;
  throw new AppError("invalid", NOT_CONFIGURED);
};

const presentHomeBackup = (row: HomeBackupRow): HomeBackup => ({
  id: row.id,
  workspace_id: row.workspace_id,
  status: row.status,
  ...(row.engine ? { engine: row.engine } : {}),
  location: row.location,
  bytes: row.bytes,
  added_bytes: row.added_bytes,
  error: row.error,
  created_at: toRfc3339(row.created_at),
  ...(row.verified_at === null ? {} : { verified_at: toRfc3339(row.verified_at) }),
});
