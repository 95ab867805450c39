// Tasks: a workspace created for one prompt, and the chat that works on it. Written by src/domain/tasks, in the workspace's batch if both
// change, and by the keeper that delivers the prompt (actors/tasks/keeper.ts).
import { and, desc, eq, sql } from "drizzle-orm";
import { build, eqParam, eqParamOrAll, insertInto, query, statement, updateBy } from "../engine/sql.ts";
import { forOwnRows, isOwn } from "../own-rows.ts";
import { tasks } from "../schema/tasks.ts";
import { workspaces } from "../schema/workspaces.ts";

export type TaskRow = typeof tasks.$inferSelect;

/** A task is deleted with its workspace, regardless of who deletes that. */
const isLiving = and(eq(tasks.deleted, false), eq(workspaces.deleted, false));
const selectLiving = () =>
  build
    .select({ task: tasks, part: workspaces.part })
    .from(tasks)
    .innerJoin(workspaces, eq(workspaces.id, tasks.workspace_id));

/** A task that is not deleted. Parameters: {id}. */
export const findTask = query(selectLiving().where(and(eqParam(tasks.id), isLiving)));

/** Case-insensitive; the newest of several with this name. Parameters: {owner_id, name}. */
export const findTaskByName = query(
  selectLiving()
    .where(and(eqParam(tasks.owner_id), sql`lower(${tasks.name}) = lower(${sql.placeholder("name")})`, isLiving))
    .orderBy(desc(tasks.created_at))
    .limit(1),
);

/** IDs and names, newest first: {owner_id, organization_id, limit}; null matches all. For `scan`. */
export const listTaskNames = query(
  build
    .select({ id: tasks.id, name: tasks.name, display_name: tasks.display_name })
    .from(tasks)
    .innerJoin(workspaces, eq(workspaces.id, tasks.workspace_id))
    .where(and(isLiving, eqParamOrAll(tasks.owner_id), eqParamOrAll(tasks.organization_id)))
    .orderBy(desc(tasks.created_at), desc(tasks.id))
    .limit(sql.placeholder("limit")),
);

/** Tasks that are not deleted, by ID: {ids}, as JSON. For `scan`. */
export const listTasksById = query(
  selectLiving().where(and(isLiving, sql`${tasks.id} in (select value from json_each(${sql.placeholder("ids")}))`)),
);

/** The task prompt that a workspace's template gets. Parameters: {workspace_id}. */
export const findTaskPrompt = query(
  build.select({ id: tasks.id, prompt: tasks.prompt }).from(tasks).where(eqParam(tasks.workspace_id)),
);

const isOpen = and(isLiving, sql`${tasks.delivered_at} is null`, eq(tasks.problem, ""));

/** Tasks whose prompt is not delivered yet. Tasks with a problem are not included: a timer or a user retries them. */
export const listOpenTasks = forOwnRows(
  query(selectLiving().where(isOpen).limit(10_000)),
  query(
    selectLiving()
      .where(and(isOpen, isOwn(workspaces.part)))
      .limit(10_000),
  ),
);

export const insertTask = insertInto(tasks);
export const updateTask = updateBy(tasks, tasks.id);

/**
 * Starts the delivery, after which the prompt cannot change. Rejected as stale if the task has changed since it was read, when its
 * `updated_at` was `known_updated_at`, or if the delivery has already started.
 */
export const beginDelivery = statement<{ id: string; known_updated_at: number; delivered_at: number }>(
  build
    .update(tasks)
    .set({ delivered_at: sql`${sql.placeholder("delivered_at")}`, problem: "" })
    .where(
      and(
        eqParam(tasks.id),
        eq(tasks.updated_at, sql.placeholder("known_updated_at")),
        sql`${tasks.delivered_at} is null`,
      ),
    ),
  { expect: 1 },
);

/** Replaces the prompt of a task before delivery. Rejected as stale after that. */
export const replacePrompt = statement<{ id: string; prompt: string; updated_at: number }>(
  build
    .update(tasks)
    .set({ prompt: sql`${sql.placeholder("prompt")}`, updated_at: sql`${sql.placeholder("updated_at")}` })
    .where(and(eqParam(tasks.id), eq(tasks.deleted, false), sql`${tasks.delivered_at} is null`)),
  { expect: 1 },
);
