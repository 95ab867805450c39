// Workspaces that are kept ready for someone: those of a template, those that can be claimed, and when a template's are looked at.
import { and, asc, eq, sql } from "drizzle-orm";
import { PREBUILDS_USER_ID } from "#schema/workspaces/prebuilds.ts";
import { build, given, query, type RowOfQuery, type Statement, statement } from "../engine/sql.ts";
import type { Store } from "../engine/store.ts";
import { setTimer } from "../engine/timers.ts";
import { agents } from "../schema/agents.ts";
import { jobs } from "../schema/jobs.ts";
import { workspace_builds, workspaces } from "../schema/workspaces.ts";
import { findSetting, putSetting } from "../settings.ts";

// In the text, not bound: the index of names by owner holds living workspaces only.
const unclaimed = and(eq(workspaces.owner_id, PREBUILDS_USER_ID), sql`${workspaces.deleted} = 0`);

/** The unclaimed workspaces of a template, oldest first: {template_id}. */
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
    .where(and(unclaimed, given(workspaces.template_id)))
    .orderBy(asc(workspaces.created_at), asc(workspaces.id)),
);
export type PrebuildRow = RowOfQuery<typeof listPrebuilds>;

/** Those of a preset that run and whose agents are all ready, longest ready first: {version_id, preset_id}. */
export const listReadyPrebuilds = query(
  build
    .select({ id: workspaces.id })
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

/** Who asked for the build with this number: {workspace_id, build_number}. */
export const findBuildInitiator = query(
  build
    .select({ initiator_id: workspace_builds.initiator_id })
    .from(workspace_builds)
    .where(and(given(workspace_builds.workspace_id), given(workspace_builds.build_number))),
);

/** Gives it to an owner; refused as stale when it is nobody's to be claimed any more (rule PB-7). */
export const takePrebuild = statement<{ id: string; owner_id: string; name: string }>(
  build
    .update(workspaces)
    .set({ owner_id: sql.placeholder("owner_id") as never, name: sql.placeholder("name") as never })
    .where(and(given(workspaces.id), unclaimed)),
  { expect: 1 },
);

const [ACTOR, NAME] = ["prebuilds", "reconcile"] as const;

/** The template's prebuilds are looked at from `due` on, however often it was asked for; milliseconds since 1970. */
export const lookAtPrebuilds = (template_id: string, due: number): Statement => setTimer(ACTOR, template_id, NAME, due);

/** Those of all templates that may have some. */
export const lookAtAllPrebuilds = (due: number): Statement => ({
  touches: [],
  sql: `update timers set due = ? where actor = '${ACTOR}' and name = '${NAME}'`,
  rows: [[due]],
});

const PAUSED = "prebuilds_paused";

/** Whether an administrator has stopped that workspaces are made and removed to be kept ready. */
export const readPrebuildsPaused = async (store: Pick<Store, "get">): Promise<boolean> =>
  (await store.get(findSetting({ key: PAUSED })))?.value === "true";

export const putPrebuildsPaused = (paused: boolean): Statement => putSetting({ key: PAUSED, value: String(paused) });

/** The same, unless they are looked at sooner. */
export const lookAtPrebuildsBy = (template_id: string, due: number): Statement => ({
  touches: [],
  sql: `insert into timers (id, actor, actor_id, name, due) values (?, '${ACTOR}', ?, '${NAME}', ?)
    on conflict (id) do update set due = min(timers.due, excluded.due)`,
  rows: [[`${ACTOR}/${template_id}/${NAME}`, template_id, due]],
});

/** Not again, unless someone has asked for it since it was set to `due`. */
export const forgetPrebuilds = (template_id: string, due: number): Statement => ({
  touches: [],
  sql: "delete from timers where id = ? and due = ?",
  rows: [[`${ACTOR}/${template_id}/${NAME}`, due]],
});

/** Moves the next look on, unless something has happened since it was set to `due`. */
export const putOffPrebuilds = (template_id: string, due: number, later: number): Statement => ({
  touches: [],
  sql: "update timers set due = ? where id = ? and due = ?",
  rows: [[later, `${ACTOR}/${template_id}/${NAME}`, due]],
});
