// Persistent timers. Their rows are written in the batch that requires them and read only by the scheduler.
import { and, asc, eq, lte, type SQL, sql } from "drizzle-orm";
import { timers } from "../schema/core.ts";
import { build, deleteBy, findBy, query, type Statement, statement } from "./sql.ts";

export type Timer = typeof timers.$inferSelect;

/** Builds the insert of a timer. An existing timer gets the due time of the expression `due`. */
const upsertWith = (due: SQL) =>
  build
    .insert(timers)
    .values({
      id: sql.placeholder("id"),
      actor: sql.placeholder("actor"),
      actor_id: sql.placeholder("actor_id"),
      name: sql.placeholder("name"),
      due: sql.placeholder("due"),
    })
    .onConflictDoUpdate({ target: timers.id, set: { due } });
const upsertTimer = statement<Timer>(upsertWith(sql`excluded.due`));
const deleteTimer = deleteBy(timers, timers.id);

/** Sets the new due time, or the earlier of both if the timer was changed since it was read. */
const moveSeen = statement<Timer & { seen: number }>(
  upsertWith(
    sql`case when timers.due = ${sql.placeholder("seen")} then excluded.due else min(timers.due, excluded.due) end`,
  ),
);
const deleteSeen = statement<{ id: string; seen: number }>(
  build.delete(timers).where(and(eq(timers.id, sql.placeholder("id")), eq(timers.due, sql.placeholder("seen")))),
);
const findTimer = findBy(timers, timers.id);

const toTimerId = (actor: string, id: string, name: string): string => `${actor}/${id}/${name}`;

/** Sets or moves the timer `name` of an actor; `due` in milliseconds since 1970. */
export const setTimer = (actor: string, id: string, name: string, due: number): Statement =>
  upsertTimer({ id: toTimerId(actor, id, name), actor, actor_id: id, name, due });

/** Removes the timer. Does nothing when it does not exist. */
export const clearTimer = (actor: string, id: string, name: string): Statement =>
  deleteTimer(toTimerId(actor, id, name));

/** The timer `name` of an actor. */
export const findActorTimer = (actor: string, id: string, name: string) =>
  findTimer({ id: toTimerId(actor, id, name) });

/** A time at which no timer is due. */
const NEVER_DUE = -1;

/**
 * Sets a timer, or removes it if `due` is undefined. For a decision that is based on data which was read after the timer, when the timer
 * was due at `seen`. If the timer was set concurrently, it stays due at the earlier time.
 */
export const moveTimer = (
  actor: string,
  id: string,
  name: string,
  { due, seen = NEVER_DUE }: { due: number | undefined; seen: number | undefined },
): Statement =>
  due === undefined
    ? deleteSeen({ id: toTimerId(actor, id, name), seen })
    : moveSeen({ id: toTimerId(actor, id, name), actor, actor_id: id, name, due, seen });

/** Page size of due timers. */
export const MAX_DUE_TIMERS = 100;

/** Timers due by `now`, oldest first, at most MAX_DUE_TIMERS. */
export const listDueTimers = query(
  build
    .select()
    .from(timers)
    .where(lte(timers.due, sql.placeholder("now")))
    .orderBy(asc(timers.due))
    .limit(MAX_DUE_TIMERS),
);

const INSERT_FOR_WORKSPACES = `insert into timers (id, actor, actor_id, name, due)
  select 'workspace/' || id || '/' || ?1, 'workspace', id, ?1, ?2 from workspaces where deleted = 0`;
// Changes even a timer that is already due, because an actor may have read it and be about to move it.
const ON_CONFLICT_EARLIEST =
  "on conflict (id) do update set due = case when timers.due > excluded.due then excluded.due else timers.due - 1 end";

/** Sets the timer `name` for every workspace that is not deleted and meets the condition, whose parameters are `values` from `?3` on. */
export const setTimersWhere = (condition: string, values: readonly string[], name: string, due: number): Statement => ({
  touches: [],
  sql: `${INSERT_FOR_WORKSPACES} and ${condition} ${ON_CONFLICT_EARLIEST}`,
  rows: [[name, due, ...values]],
});

/** Sets the timer `name` for every workspace of a template, in the batch that changes the template. */
export const setTimersOfTemplate = (template_id: string, name: string, due: number): Statement =>
  setTimersWhere("template_id = ?3", [template_id], name, due);

/** Sets the timer `name` for every workspace of a user. */
export const setTimersOfOwner = (owner_id: string, name: string, due: number): Statement =>
  setTimersWhere("owner_id = ?3", [owner_id], name, due);
