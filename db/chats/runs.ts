// Recorded model calls: the statements that record them, and reads for debugging a chat (facts/chats 4.18).
import { and, asc, desc, eq, sql } from "drizzle-orm";
import { build, eqParam, findBy, insertInto, query, type Statement, updateBy } from "../engine/sql.ts";
import { chat_run_steps, chat_runs } from "../schema/chat-runs.ts";
import { messages } from "../schema/chats.ts";

export type ChatRunRow = typeof chat_runs.$inferSelect;
export type ChatRunStepRow = typeof chat_run_steps.$inferSelect;

/** Maximum runs in one answer. */
const MAX_LISTED_RUNS = 100;
/** Steps deleted per commit. */
const SLICE_ROWS = 100;

export const insertRun = insertInto(chat_runs);
export const updateRun = updateBy(chat_runs, chat_runs.key);
export const insertStep = insertInto(chat_run_steps);

/** The runs of a chat, newest first. Parameters: {chat}. */
export const listRuns = query(
  build.select().from(chat_runs).where(eqParam(chat_runs.chat)).orderBy(desc(chat_runs.key)).limit(MAX_LISTED_RUNS),
);

/** A run by its ID. Parameters: {id}. */
export const findRun = findBy(chat_runs, chat_runs.id);

/** The steps of a run, in order. Parameters: {run}. */
export const listSteps = query(
  build.select().from(chat_run_steps).where(eqParam(chat_run_steps.run)).orderBy(asc(chat_run_steps.number)),
);

/** The newest message of a chat, and the newest message of a user in it. Parameters: {chat}. For `scan`. */
export const findHistoryTips = query(
  build
    .select({
      last: sql<number | null>`max(${messages.id})`.as("last"),
      user: sql<number | null>`max(case when ${messages.role} = 'user' then ${messages.id} end)`.as("user"),
    })
    .from(messages)
    .where(and(eqParam(messages.chat), eq(messages.deleted, false))),
);

/** Parameters: {chat}. */
export const findAnyStep = query(
  build
    .select({ run: chat_run_steps.run })
    .from(chat_run_steps)
    .innerJoin(chat_runs, eq(chat_runs.key, chat_run_steps.run))
    .where(eqParam(chat_runs.chat))
    .limit(1),
);

export const deleteRunSlice = (chat: number): Statement => ({
  touches: [],
  sql: `delete from chat_run_steps where (run, number) in
    (select s.run, s.number from chat_run_steps s join chat_runs r on r.key = s.run where r.chat = ?1 limit ${SLICE_ROWS})`,
  rows: [[chat]],
});

/** A run that began before {before}. */
export const findOldRun = query(
  build
    .select({ key: chat_runs.key })
    .from(chat_runs)
    .where(sql`${chat_runs.started_at} < ${sql.placeholder("before")}`)
    .limit(1),
);

/** Deletes some steps of old runs, and old runs without steps. */
export const deleteOldRunSlice = (before: number): Statement[] => [
  {
    touches: [],
    sql: `delete from chat_run_steps where (run, number) in
      (select s.run, s.number from chat_runs r join chat_run_steps s on s.run = r.key where r.started_at < ?1 limit ${SLICE_ROWS})`,
    rows: [[before]],
  },
  {
    touches: [],
    sql: `delete from chat_runs where key in (select r.key from chat_runs r where r.started_at < ?1
      and not exists (select 1 from chat_run_steps s where s.run = r.key) limit ${SLICE_ROWS})`,
    rows: [[before]],
  },
];

/** Marks the runs that were open when the server stopped as interrupted; with `part`, only those of chats in that shard. */
export const interruptOpenRuns = (now: number, part?: number): Statement => {
  const update =
    "update chat_runs set status = 'interrupted', updated_at = ?1, finished_at = ?1 where status = 'in_progress'";
  if (part === undefined) return { touches: [], sql: update, rows: [[now]] };
  return {
    touches: [],
    sql: `${update} and chat in (select c.key from chats c where c.part = ?2)`,
    rows: [[now, part]],
  };
};
