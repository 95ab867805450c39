// Timers that matter are rows, written in the batch that made them matter and read by the scheduler alone.
import { and, asc, eq, lte, type SQL, sql } from "drizzle-orm";
import { timers } from "../schema/core.ts";
import { build, deleteBy, findBy, query, type Statement, statement } from "./sql.ts";

export type Timer = typeof timers.$inferSelect;

/** Where there is one already, it is due at `due` from now on. */
const insert = (due: SQL) =>
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
const put = statement<Timer>(insert(sql`excluded.due`));
const drop = deleteBy(timers, timers.id);

/** Set by someone else since it was seen, it stays where it is sooner. */
const move = statement<Timer & { seen: number }>(
  insert(
    sql`case when timers.due = ${sql.placeholder("seen")} then excluded.due else min(timers.due, excluded.due) end`,
  ),
);
const dropSeen = statement<{ id: string; seen: number }>(
  build.delete(timers).where(and(eq(timers.id, sql.placeholder("id")), eq(timers.due, sql.placeholder("seen")))),
);
const findTimer = findBy(timers, timers.id);

const timerId = (actor: string, id: string, name: string): string => `${actor}/${id}/${name}`;

/** Sets or moves the timer `name` of an actor; `due` in milliseconds since 1970. */
export const setTimer = (actor: string, id: string, name: string, due: number): Statement =>
  put({ id: timerId(actor, id, name), actor, actor_id: id, name, due });

/** Removes it; no error when none exists. */
export const clearTimer = (actor: string, id: string, name: string): Statement => drop(timerId(actor, id, name));

/** The timer `name` of an actor. */
export const findActorTimer = (actor: string, id: string, name: string) => findTimer({ id: timerId(actor, id, name) });

/** No timer is due then. */
const NEVER = -1;

/**
 * What an actor has planned by what it read after it saw its timer, which was due at `seen`: sets it, or removes it where `due` is undefined.
 * Anyone who set it in the meantime knows something newer, and is heard: the timer is due then, or sooner.
 */
export const moveTimer = (
  actor: string,
  id: string,
  name: string,
  { due, seen = NEVER }: { due: number | undefined; seen: number | undefined },
): Statement =>
  due === undefined
    ? dropSeen({ id: timerId(actor, id, name), seen })
    : move({ id: timerId(actor, id, name), actor, actor_id: id, name, due, seen });

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
// One that is due already becomes another than an actor may just have seen and be about to move.
const SOONER =
  "on conflict (id) do update set due = case when timers.due > excluded.due then excluded.due else timers.due - 1 end";

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
