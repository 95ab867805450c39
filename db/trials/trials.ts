// Trials: their rows, and the diffs of their ways. Written by the keeper of trials (actors/trials/keeper.ts), except the first row, which
// is part of the fork's batch.
import { and, desc, eq, max, notInArray, sql } from "drizzle-orm";
import { MAX_OPEN_WAYS } from "#schema/chats/trial.ts";
import { build, eqParam, findBy, insertInto, query, type Statement, statement } from "../engine/sql.ts";
import { forOwnRows, isOwn } from "../own-rows.ts";
import { messages } from "../schema/chats.ts";
import { trial_diffs, trials } from "../schema/trials.ts";
import { workspaces } from "../schema/workspaces.ts";

export type TrialRow = typeof trials.$inferSelect;
export type { StoredKeep, StoredWay } from "../schema/trials.ts";

const withPart = () =>
  build
    .select({ trial: trials, part: workspaces.part })
    .from(trials)
    .innerJoin(workspaces, eq(workspaces.id, trials.workspace_id));

/** A trial with the shard that writes it. Parameters: {id}. */
export const findTrial = query(withPart().where(eqParam(trials.id)));

/** All trials of a chat, newest first. Parameters: {chat_id, limit}. */
export const listTrials = query(
  build
    .select()
    .from(trials)
    .where(eqParam(trials.chat_id))
    .orderBy(desc(trials.created_at), desc(trials.id))
    .limit(sql.placeholder("limit")),
);

const isOpen = notInArray(trials.status, ["kept", "discarded"]);

/** Trials of a chat of which no way has been kept or discarded. Parameters: {chat_id}. */
export const listOpenTrialsOfChat = query(
  build
    .select({ id: trials.id })
    .from(trials)
    .where(and(eqParam(trials.chat_id), isOpen)),
);

const open = () =>
  build.select({ id: trials.id }).from(trials).innerJoin(workspaces, eq(workspaces.id, trials.workspace_id));

/** All open trials, resumed at startup. */
export const listOpenTrials = forOwnRows(
  query(open().where(isOpen)),
  query(open().where(and(isOpen, isOwn(workspaces.part)))),
);

export const insertTrial = insertInto(trials);

const save = statement<
  Pick<TrialRow, "id" | "status" | "error" | "ways" | "keep" | "open_ways" | "updated_at"> & { known: number }
>(
  build
    .update(trials)
    .set({
      status: sql.placeholder("status"),
      error: sql.placeholder("error"),
      ways: sql.placeholder("ways"),
      keep: sql.placeholder("keep"),
      open_ways: sql.placeholder("open_ways"),
      updated_at: sql.placeholder("updated_at"),
      revision: sql`${trials.revision} + 1`,
    } as never)
    .where(and(eqParam(trials.id), eq(trials.revision, sql.placeholder("known")))),
  { expect: 1 },
);

/** Stores the next state of a trial. Rejected as stale when it has changed since it was read. */
export const saveTrial = ({
  id,
  status,
  error,
  ways,
  keep,
  open_ways,
  updated_at,
  revision: known,
}: TrialRow): Statement => save({ id, status, error, ways, keep, open_ways, updated_at, known });

/** A guard: rejects the batch as stale when the owner has more open ways than allowed. Parameters: {id, owner_id}. */
export const guardOpenWays = statement<{ id: string; owner_id: string }>(
  build
    .update(trials)
    .set({ revision: sql`${trials.revision}` })
    .where(
      and(
        eqParam(trials.id),
        sql`(select coalesce(sum(t.open_ways), 0) from trials t where t.owner_id = ${sql.placeholder("owner_id")}) <= ${sql.raw(String(MAX_OPEN_WAYS))}`,
      ),
    ),
  { expect: 1, alone: "personal" },
);

/** The newest message of a chat, visible or not. Parameters: {chat}. */
export const findLastMessage = query(
  build
    .select({ id: max(messages.id) })
    .from(messages)
    .where(eqParam(messages.chat)),
);

/** Number of a person's open ways. Parameters: {owner_id}. */
export const countOpenWays = query(
  build
    .select({ count: sql<number>`coalesce(sum(${trials.open_ways}), 0)` })
    .from(trials)
    .where(eqParam(trials.owner_id)),
);

export const upsertTrialDiff = statement<typeof trial_diffs.$inferInsert>(
  build
    .insert(trial_diffs)
    .values({
      trial_id: sql.placeholder("trial_id"),
      number: sql.placeholder("number"),
      folders: sql.placeholder("folders"),
    })
    .onConflictDoUpdate({
      target: [trial_diffs.trial_id, trial_diffs.number],
      set: { folders: sql`excluded.folders` },
    }),
);

/** Parameters: {trial_id, number}. */
export const findTrialDiff = findBy(trial_diffs, trial_diffs.trial_id, trial_diffs.number);

/** Deletes the trials of a deleted chat. Open ones are deleted when their forks are. */
export const deleteTrials = (chat_id: string): Statement[] =>
  [
    "delete from trial_diffs where trial_id in (select id from trials where chat_id = ?1 and status in ('kept', 'discarded'))",
    "delete from trials where chat_id = ?1 and status in ('kept', 'discarded')",
  ].map((text) => ({ touches: [], sql: text, rows: [[chat_id]] }));
