// Tasks: a workspace made for one prompt with the chat that works on it. Written by src/domain/tasks, in the batch of the workspace where
// that changes with it, and by the keeper that gives the prompt (actors/tasks/keeper.ts).
import { and, desc, eq, sql } from "drizzle-orm";
import { build, given, givenOrAll, insertInto, query, statement, updateBy } from "../engine/sql.ts";
import { isAmongParts, ofParts } from "../parts.ts";
import { tasks } from "../schema/tasks.ts";
import { workspaces } from "../schema/workspaces.ts";

export type TaskRow = typeof tasks.$inferSelect;

/** A task goes with its workspace, whoever deletes that. */
const lives = and(eq(tasks.deleted, false), eq(workspaces.deleted, false));
const living = () =>
  build
    .select({ task: tasks, part: workspaces.part })
    .from(tasks)
    .innerJoin(workspaces, eq(workspaces.id, tasks.workspace_id));

/** {id}; not one that is deleted. */
export const findTask = query(living().where(and(given(tasks.id), lives)));

/** Letter case ignored, the newest where several are named so: {owner_id, name}. */
export const findTaskByName = query(
  living()
    .where(and(given(tasks.owner_id), sql`lower(${tasks.name}) = lower(${sql.placeholder("name")})`, lives))
    .orderBy(desc(tasks.created_at))
    .limit(1),
);

/** Newest first: {owner_id, organization_id, limit}; null stands for all. For `scan`. */
export const listTasks = query(
  living()
    .where(and(lives, givenOrAll(tasks.owner_id), givenOrAll(tasks.organization_id)))
    .orderBy(desc(tasks.created_at), desc(tasks.id))
    .limit(sql.placeholder("limit")),
);

/** What a template is notified of the task its workspace is for: {workspace_id}. */
export const findTaskPrompt = query(
  build.select({ id: tasks.id, prompt: tasks.prompt }).from(tasks).where(given(tasks.workspace_id)),
);

const isOpen = and(lives, sql`${tasks.delivered_at} is null`);

/** Those whose prompt is yet to be given. */
export const listOpenTasks = ofParts(
  query(living().where(isOpen).limit(10_000)),
  query(
    living()
      .where(and(isOpen, isAmongParts(workspaces.part)))
      .limit(10_000),
  ),
);

export const insertTask = insertInto(tasks);
export const updateTask = updateBy(tasks, tasks.id);

/** From now on the prompt is what it is; refused as stale when it was changed since it was read, or is being given. */
export const beginDelivery = statement<{ id: string; known: number; delivered_at: number }>(
  build
    .update(tasks)
    .set({ delivered_at: sql`${sql.placeholder("delivered_at")}`, problem: "" })
    .where(and(given(tasks.id), eq(tasks.updated_at, sql.placeholder("known")), sql`${tasks.delivered_at} is null`)),
  { expect: 1 },
);

/** Another prompt for a task that was not given its first one yet; refused as stale when it was. */
export const replacePrompt = statement<{ id: string; prompt: string; updated_at: number }>(
  build
    .update(tasks)
    .set({ prompt: sql`${sql.placeholder("prompt")}`, updated_at: sql`${sql.placeholder("updated_at")}` })
    .where(and(given(tasks.id), eq(tasks.deleted, false), sql`${tasks.delivered_at} is null`)),
  { expect: 1 },
);
