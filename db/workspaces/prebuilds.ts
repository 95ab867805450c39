// Prebuilds: queries for a template's prebuilds, for claimable ones, and for when a template's prebuilds are checked.
import { and, asc, eq, sql } from "drizzle-orm";
import { PREBUILDS_USER_ID } from "#schema/workspaces/prebuilds.ts";
import { build, eqParam, query, type RowOfQuery, type Statement, statement } from "../engine/sql.ts";
import type { Store } from "../engine/store.ts";
import { setTimer } from "../engine/timers.ts";
import { agents } from "../schema/agents.ts";
import { jobs } from "../schema/jobs.ts";
import { workspace_builds, workspaces } from "../schema/workspaces.ts";
import { findSetting, upsertSetting } from "../settings.ts";

// With a parameter instead of the literal 0, SQLite would not use the index of names by owner, which has no deleted workspaces.
const unclaimed = and(eq(workspaces.owner_id, PREBUILDS_USER_ID), sql`${workspaces.deleted} = 0`);

/** The unclaimed workspaces of a template, oldest first. Parameters: {template_id}. */
export const listPrebuilds = query(
  build
    .select({
      workspace_id: workspaces.id,
      build_id: workspace_builds.id,
      version_id: workspace_builds.template_version_id,
      preset_id: workspace_builds.template_version_preset_id,
      transition: workspace_builds.transition,
      started_at: jobs.started_at,
      canceled_at: jobs.canceled_at,
      completed_at: jobs.completed_at,
      error: jobs.error,
    })
    .from(workspaces)
    .innerJoin(workspace_builds, eq(workspace_builds.id, workspaces.latest_build_id))
    .innerJoin(jobs, eq(jobs.id, workspace_builds.job_id))
    .where(and(unclaimed, eqParam(workspaces.template_id)))
    .orderBy(asc(workspaces.created_at), asc(workspaces.id)),
);
export type PrebuildRow = RowOfQuery<typeof listPrebuilds>;

/** Running prebuilds of a preset whose agents are all ready, longest ready first. Parameters: {version_id, preset_id}. */
export const listReadyPrebuilds = query(
  build
    .select({ id: workspaces.id, daily_cost: workspace_builds.daily_cost })
    .from(workspaces)
    .innerJoin(workspace_builds, eq(workspace_builds.id, workspaces.latest_build_id))
    .innerJoin(jobs, eq(jobs.id, workspace_builds.job_id))
    .where(
      and(
        unclaimed,
        sql`${workspaces.dormant_at} is null`,
        eq(workspace_builds.template_version_id, sql.placeholder("version_id")),
        eq(workspace_builds.template_version_preset_id, sql.placeholder("preset_id")),
        eq(workspace_builds.transition, "start"),
        eq(workspace_builds.initiator_id, PREBUILDS_USER_ID),
        eq(jobs.error, ""),
        sql`${jobs.canceled_at} is null and ${jobs.completed_at} is not null`,
        sql`not exists (select 1 from ${agents} where ${agents.build_id} = ${workspace_builds.id} and ${agents.parent_id} is null
          and (${agents.lifecycle_state} <> 'ready' or ${agents.disconnected_at} > coalesce(${agents.last_connected_at}, 0)))`,
      ),
    )
    .orderBy(asc(jobs.completed_at), asc(workspaces.id))
    .limit(200),
);

/** Who requested the build with this number. Parameters: {workspace_id, build_number}. */
export const findBuildInitiator = query(
  build
    .select({ initiator_id: workspace_builds.initiator_id })
    .from(workspace_builds)
    .where(and(eqParam(workspace_builds.workspace_id), eqParam(workspace_builds.build_number))),
);

/** Assigns a prebuild to an owner. Rejected as stale when it is no longer unclaimed (rule PB-7). */
export const claimPrebuildRow = statement<{ id: string; owner_id: string; name: string }>(
  build
    .update(workspaces)
    .set({ owner_id: sql.placeholder("owner_id") as never, name: sql.placeholder("name") as never })
    .where(and(eqParam(workspaces.id), unclaimed)),
  { expect: 1 },
);

const [ACTOR, NAME] = ["prebuilds", "reconcile"] as const;

/** Schedules a check of the template's prebuilds at `due`, in milliseconds since 1970. */
export const schedulePrebuildCheck = (template_id: string, due: number): Statement =>
  setTimer(ACTOR, template_id, NAME, due);

/** Schedules a check for all templates that may have prebuilds. */
export const scheduleAllPrebuildChecks = (due: number): Statement => ({
  touches: [],
  sql: `update timers set due = ? where actor = '${ACTOR}' and name = '${NAME}'`,
  rows: [[due]],
});

const PAUSED = "prebuilds_paused";

/** Returns whether an administrator has paused prebuilds. */
export const readPrebuildsPaused = async (store: Pick<Store, "get">): Promise<boolean> =>
  (await store.get(findSetting({ key: PAUSED })))?.value === "true";

export const upsertPrebuildsPaused = (paused: boolean): Statement =>
  upsertSetting({ key: PAUSED, value: String(paused) });

/** Schedules a check of the template's prebuilds at `due`, unless an earlier one is scheduled. */
export const schedulePrebuildCheckBy = (template_id: string, due: number): Statement => ({
  touches: [],
  sql: `insert into timers (id, actor, actor_id, name, due) values (?, '${ACTOR}', ?, '${NAME}', ?)
    on conflict (id) do update set due = min(timers.due, excluded.due)`,
  rows: [[`${ACTOR}/${template_id}/${NAME}`, template_id, due]],
});

/** Removes the check, unless it was rescheduled since it was set to `due`. */
export const clearPrebuildCheck = (template_id: string, due: number): Statement => ({
  touches: [],
  sql: "delete from timers where id = ? and due = ?",
  rows: [[`${ACTOR}/${template_id}/${NAME}`, due]],
});

/** Postpones the check, unless it was rescheduled since it was set to `due`. */
export const postponePrebuildCheck = (template_id: string, due: number, later: number): Statement => ({
  touches: [],
  sql: "update timers set due = ? where id = ? and due = ?",
  rows: [[later, `${ACTOR}/${template_id}/${NAME}`, due]],
});
