// Home backups: their rows, due backups, and figures on age and size. Written by the keeper of home backups
// (actors/home-backups/keeper.ts), except the first row of a requested one.
import { and, asc, desc, eq, inArray, isNotNull, isNull, lt, ne, type SQL, sql } from "drizzle-orm";
import { PREBUILDS_USER_ID } from "#schema/workspaces/prebuilds.ts";
import { build, deleteBy, eqParam, findBy, insertInto, query, updateBy } from "../engine/sql.ts";
import { forOwnRows, isOwn } from "../own-rows.ts";
import { home_backups } from "../schema/home-backups.ts";
import { jobs } from "../schema/jobs.ts";
import { workspace_snapshots } from "../schema/snapshots.ts";
import { templates } from "../schema/templates.ts";
import { users } from "../schema/users.ts";
import { workspace_builds, workspaces } from "../schema/workspaces.ts";

export type HomeBackupRow = typeof home_backups.$inferSelect;

export const findHomeBackup = findBy(home_backups, home_backups.id);

/** All backups of a workspace, newest first. Parameters: {workspace_id}. */
export const listHomeBackups = query(
  build
    .select()
    .from(home_backups)
    .where(eqParam(home_backups.workspace_id))
    .orderBy(desc(home_backups.created_at), desc(home_backups.id)),
);

/** Home backups that are being restored, and must not be deleted. */
export const listFetchedNow = query(
  build
    .select({ id: sql<string>`${workspace_snapshots.home_backup_id}`.as("id") })
    .from(workspace_snapshots)
    .where(and(eq(workspace_snapshots.status, "creating"), sql`${workspace_snapshots.home_backup_id} is not null`)),
);

const selectHomes = () =>
  build
    .select({
      id: workspaces.id,
      owner_id: workspaces.owner_id,
      name: workspaces.name,
      owner_name: users.username,
      part: workspaces.part,
      deleted: workspaces.deleted,
      provisioner: jobs.provisioner,
      tags: jobs.tags,
    })
    .from(workspaces)
    .innerJoin(users, eq(users.id, workspaces.owner_id))
    .innerJoin(workspace_builds, eq(workspace_builds.id, workspaces.latest_build_id))
    .innerJoin(jobs, eq(jobs.id, workspace_builds.job_id));

/** A workspace and the provisioner of its files. Parameters: {id}. */
export const findHome = query(selectHomes().where(eqParam(workspaces.id)));
const toHome = findHome({ id: "" }).map;
export type Home = ReturnType<typeof toHome>;

/** Columns that identify the backup and its owner. */
const IDENTITY = {
  id: home_backups.id,
  workspace_id: home_backups.workspace_id,
  owner_id: workspaces.owner_id,
  part: workspaces.part,
} as const;

const queryOpen = (more?: SQL) =>
  query(
    build
      .select({ ...IDENTITY, status: home_backups.status })
      .from(home_backups)
      .innerJoin(workspaces, eq(workspaces.id, home_backups.workspace_id))
      .where(and(inArray(home_backups.status, ["creating", "deleting"]), more))
      .orderBy(asc(home_backups.created_at)),
  );

const isOwnWorkspace = isOwn(workspaces.part);

/** Backups that are being created or deleted, oldest first. They are retried until done. */
export const listOpenHomeBackups = forOwnRows(queryOpen(), queryOpen(isOwnWorkspace));

const queryLeftovers = (more?: SQL) =>
  query(
    build
      .select({ id: workspace_snapshots.id, workspace_id: workspace_snapshots.workspace_id })
      .from(workspace_snapshots)
      .innerJoin(workspaces, eq(workspaces.id, workspace_snapshots.workspace_id))
      .where(
        and(
          eq(workspace_snapshots.reason, "backup"),
          inArray(workspace_snapshots.status, ["ready", "failed"]),
          sql`not exists (select 1 from ${home_backups} b where b.id = ${workspace_snapshots.id} and b.status = 'creating')`,
          more,
        ),
      ),
  );

/** Snapshots from which no backup is being copied anymore. */
export const listLeftoverSnapshots = forOwnRows(queryLeftovers(), queryLeftovers(isOwnWorkspace));

/** The condition that a backup is up to date: created since then, or of a workspace that has not run since. */
const isCurrent = sql`exists (
  select 1 from ${home_backups} b where b.workspace_id = ${workspaces.id} and b.status = 'ready' and b.error = ''
    and b.location = ${sql.placeholder("location")}
    and (b.created_at > ${sql.placeholder("since")}
      or (${workspace_builds.transition} = 'stop' and ${jobs.completed_at} <= b.created_at)))`;
/** The condition that a backup is being created, or failed recently. */
const isTried = sql`exists (
  select 1 from ${home_backups} b where b.workspace_id = ${workspaces.id}
    and (b.status = 'creating' or (b.status = 'failed' and b.created_at > ${sql.placeholder("tried_since")})))`;

const isScheduled = and(
  eq(workspaces.deleted, false),
  ne(workspaces.owner_id, PREBUILDS_USER_ID),
  inArray(jobs.provisioner, ["local", "docker"]),
  eq(templates.home_backups, true),
);

const queryDue = (more?: SQL) =>
  query(
    selectHomes()
      .innerJoin(templates, eq(templates.id, workspaces.template_id))
      .where(and(isScheduled, isNotNull(jobs.completed_at), sql`not ${isCurrent}`, sql`not ${isTried}`, more))
      .orderBy(asc(workspaces.created_at))
      .limit(1_000),
  );

/** Workspaces that are due for a backup. Parameters: {location, since, tried_since}. */
export const listDueHomes = forOwnRows(queryDue(), queryDue(isOwnWorkspace));

const queryUnverified = (more?: SQL) =>
  query(
    build
      .select(IDENTITY)
      .from(home_backups)
      .innerJoin(workspaces, eq(workspaces.id, home_backups.workspace_id))
      .where(
        and(
          eq(home_backups.status, "ready"),
          eq(home_backups.error, ""),
          eqParam(home_backups.location),
          sql`coalesce(${home_backups.verified_at}, ${home_backups.created_at}) <= ${sql.placeholder("before")}`,
          sql`not exists (select 1 from ${home_backups} b where b.workspace_id = ${home_backups.workspace_id}
            and b.status = 'ready' and b.created_at > ${home_backups.created_at})`,
          more,
        ),
      )
      .orderBy(asc(home_backups.created_at))
      .limit(100),
  );

/** The newest backup of each workspace that was not verified since. Parameters: {location, before}. */
export const listUnverifiedHomeBackups = forOwnRows(queryUnverified(), queryUnverified(isOwnWorkspace));

const queryAbandoned = (more?: SQL) =>
  query(
    build
      .select({ id: home_backups.id, part: workspaces.part })
      .from(home_backups)
      .innerJoin(workspaces, eq(workspaces.id, home_backups.workspace_id))
      .where(
        and(
          eq(workspaces.deleted, true),
          isNull(workspaces.trashed_until),
          lt(workspaces.updated_at, sql.placeholder("before")),
          inArray(home_backups.status, ["ready", "failed"]),
          more,
        ),
      )
      .limit(100),
  );

/** Backups of workspaces that were permanently deleted before. Parameters: {before}. */
export const listAbandonedHomeBackups = forOwnRows(queryAbandoned(), queryAbandoned(isOwnWorkspace));

const isReady = sql`${home_backups.status} = 'ready'`;

/** Each workspace that has backups or is scheduled for them, with their state. No parameters. */
export const listHomesWithBackups = query(
  build
    .select({
      workspace_id: workspaces.id,
      workspace_name: workspaces.name,
      owner_name: users.username,
      deleted: workspaces.deleted,
      backups: sql<number>`sum(case when ${isReady} then 1 else 0 end)`.mapWith(Number).as("backups"),
      bytes: sql<number>`coalesce(sum(${home_backups.added_bytes}), 0)`.mapWith(Number).as("bytes"),
      last_at: sql<
        number | null
      >`max(case when ${isReady} and ${home_backups.error} = '' then ${home_backups.created_at} end)`
        .mapWith(Number)
        .as("last_at"),
      damaged: sql<number>`sum(case when ${isReady} and ${home_backups.error} <> '' then 1 else 0 end)`
        .mapWith(Number)
        .as("damaged"),
      failed_at: sql<
        number | null
      >`max(case when ${home_backups.status} = 'failed' then ${home_backups.created_at} end)`
        .mapWith(Number)
        .as("failed_at"),
      error: sql<string>`coalesce(max(${home_backups.error}), '')`.as("error"),
      is_scheduled: sql<number>`max(case when ${isScheduled} and ${jobs.completed_at} is not null then 1 else 0 end)`
        .mapWith(Number)
        .as("is_scheduled"),
      stopped_at: sql<
        number | null
      >`max(case when ${workspace_builds.transition} = 'stop' then ${jobs.completed_at} end)`
        .mapWith(Number)
        .as("stopped_at"),
      created_at: workspaces.created_at,
      tags: jobs.tags,
    })
    .from(workspaces)
    .innerJoin(users, eq(users.id, workspaces.owner_id))
    .innerJoin(templates, eq(templates.id, workspaces.template_id))
    .innerJoin(workspace_builds, eq(workspace_builds.id, workspaces.latest_build_id))
    .innerJoin(jobs, eq(jobs.id, workspace_builds.job_id))
    .leftJoin(home_backups, eq(home_backups.workspace_id, workspaces.id))
    .where(sql`${home_backups.id} is not null or (${isScheduled})`)
    .groupBy(workspaces.id, workspaces.name, users.username, workspaces.deleted, workspaces.created_at, jobs.tags)
    .limit(10_000),
);
const toStanding = listHomesWithBackups({}).map;
export type HomeStanding = ReturnType<typeof toStanding>;

/** Rejects the batch as `constraint` when one is already being created. */
export const insertHomeBackup = insertInto(home_backups);
export const updateHomeBackup = updateBy(home_backups, home_backups.id);
export const deleteHomeBackup = deleteBy(home_backups, home_backups.id);
