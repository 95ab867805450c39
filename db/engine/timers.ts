// Timers that matter are rows, written in the batch that made them matter and read by the scheduler alone.
import { asc, lte, sql } from "drizzle-orm";
import { timers } from "../schema/core.ts";
import { build, deleteBy, query, type Statement, statement } from "./sql.ts";

export type Timer = typeof timers.$inferSelect;

const put = statement<Timer>(
  build
    .insert(timers)
    .values({
      id: sql.placeholder("id"),
      actor: sql.placeholder("actor"),
      actor_id: sql.placeholder("actor_id"),
      name: sql.placeholder("name"),
      due: sql.placeholder("due"),
    })
    .onConflictDoUpdate({ target: timers.id, set: { due: sql`excluded.due` } }),
);
const drop = deleteBy(timers, timers.id);

const timerId = (actor: string, id: string, name: string): string => `${actor}/${id}/${name}`;

/** Sets or moves the timer `name` of an actor; `due` in milliseconds since 1970. */
export const setTimer = (actor: string, id: string, name: string, due: number): Statement =>
  put({ id: timerId(actor, id, name), actor, actor_id: id, name, due });

/** Removes it; no error when there is none. */
export const clearTimer = (actor: string, id: string, name: string): Statement => drop(timerId(actor, id, name));

/** One page of due timers. */
export const TIMERS_AT_ONCE = 100;

/** The timers due by `now`, oldest first, at most TIMERS_AT_ONCE. */
export const dueTimers = query(
  build
    .select()
    .from(timers)
    .where(lte(timers.due, sql.placeholder("now")))
    .orderBy(asc(timers.due))
    .limit(TIMERS_AT_ONCE),
);

const OF_WORKSPACES = `insert into timers (id, actor, actor_id, name, due)
  select 'workspace/' || id || '/' || ?1, 'workspace', id, ?1, ?2 from workspaces`;
const SOONER = "on conflict (id) do update set due = min(timers.due, excluded.due)";

/** The same for every workspace of a template that is not deleted: they are told in the batch that changes the template. */
export const setTimersOfTemplate = (template_id: string, name: string, due: number): Statement => ({
  touches: [],
  sql: `${OF_WORKSPACES} where template_id = ?3 and deleted = 0 ${SOONER}`,
  rows: [[name, due, template_id]],
});

/** The same for every workspace of a user. */
export const setTimersOfOwner = (owner_id: string, name: string, due: number): Statement => ({
  touches: [],
  sql: `${OF_WORKSPACES} where owner_id = ?3 and deleted = 0 ${SOONER}`,
  rows: [[name, due, owner_id]],
});
