// The ledger of lifecycle hooks: requests to consumers and their decisions. Old rows, and rows beyond a maximum number, are deleted in
// slices.
import { and, desc, lt, sql } from "drizzle-orm";
import { build, eqParam, eqParamOrAll, insertInto, query, type Statement, statement } from "./engine/sql.ts";
import { hook_dispatches } from "./schema/hook-dispatches.ts";

export type HookDispatchRow = typeof hook_dispatches.$inferSelect;

export const insertHookDispatch = insertInto(hook_dispatches);

const matchesFilter = and(
  eqParamOrAll(hook_dispatches.event),
  eqParamOrAll(hook_dispatches.result),
  lt(hook_dispatches.key, sql.placeholder("before")),
);

/** Dispatches before a key, newest first, optionally filtered by event or result. Parameters: {event, result, before, limit}. */
export const listHookDispatches = query(
  build
    .select()
    .from(hook_dispatches)
    .where(matchesFilter)
    .orderBy(desc(hook_dispatches.key))
    .limit(sql.placeholder("limit")),
);

/** Dispatches of one chat before a key, newest first. Parameters: {chat_id, event, result, before, limit}. */
export const listHookDispatchesOfChat = query(
  build
    .select()
    .from(hook_dispatches)
    .where(and(eqParam(hook_dispatches.chat_id), matchesFilter))
    .orderBy(desc(hook_dispatches.key))
    .limit(sql.placeholder("limit")),
);

/** The key of a dispatch, which is its position in the list. Parameters: {id}. */
export const findHookDispatch = query(
  build.select({ key: hook_dispatches.key }).from(hook_dispatches).where(eqParam(hook_dispatches.id)),
);

/** Deletes the contents of a deleted chat. */
export const clearHookContents = statement<{ chat_id: string }>(
  build.update(hook_dispatches).set({ request: null, response: null }).where(eqParam(hook_dispatches.chat_id)),
);

/** Rows deleted per commit. */
const SLICE_ROWS = 500;

/** A row that is older than `before`, or not among the newest `most`. Parameters: {before, most}. */
export const findOldHookDispatch = query(
  build
    .select({ key: hook_dispatches.key })
    .from(hook_dispatches)
    .where(
      sql`${hook_dispatches.created_at} < ${sql.placeholder("before")}
        or ${hook_dispatches.key} <= (select max(key) from hook_dispatches) - ${sql.placeholder("most")}`,
    )
    .limit(1),
);

export const deleteOldHookDispatches = ({ before, most }: { before: number; most: number }): Statement => ({
  touches: [],
  sql: `delete from hook_dispatches where key in (
    select key from hook_dispatches where created_at < ?1 or key <= (select max(key) from hook_dispatches) - ?2
    order by key limit ${SLICE_ROWS})`,
  rows: [[before, most]],
});
