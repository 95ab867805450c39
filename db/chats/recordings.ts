// Recorded prompts and answers of the gateway's calls, encrypted by src/domain/ai/recordings.ts.
import { asc, eq, inArray, lt, sql } from "drizzle-orm";
import { build, eqParam, query, type Statement, statement } from "../engine/sql.ts";
import { model_recordings, model_spend } from "../schema/model-spend.ts";
import { users } from "../schema/users.ts";

export type RecordingRow = typeof model_recordings.$inferSelect;

/** Stores a recording, unless its user was deleted concurrently. */
export const insertRecording = (row: RecordingRow): Statement => ({
  touches: [],
  sql: `insert into model_recordings (id, user_id, sealed_texts, prompt_bytes, answer_bytes, created_at)
    select cast(?1 as text), cast(?2 as text), cast(?3 as text), cast(?4 as bigint), cast(?5 as bigint), cast(?6 as bigint)
    where exists (select 1 from users where id = ?2 and deleted = 0)`,
  rows: [[row.id, row.user_id, row.sealed_texts, row.prompt_bytes, row.answer_bytes, row.created_at]],
});

/** The recording of a call, and its user. Parameters: {key}. */
export const findRecording = query(
  build
    .select({ recording: model_recordings, username: users.username })
    .from(model_spend)
    .innerJoin(model_recordings, eq(model_recordings.id, model_spend.recording_id))
    .innerJoin(users, eq(users.id, model_recordings.user_id))
    .where(eqParam(model_spend.key)),
);

const isOld = lt(model_recordings.created_at, sql.placeholder("before"));

/** A recording from before a time. */
export const findOldRecording = query(
  build.select({ id: model_recordings.id }).from(model_recordings).where(isOld).limit(1),
);

/**
 * The newest recording with which the total size exceeds {max_bytes}, counted from the newest one. This recording and older ones must be
 * deleted. `created_at` is null if all recordings fit.
 */
export const findRecordingBeyond = query(
  build
    .select({ created_at: sql<number | null>`max(created_at)`.as("created_at") })
    .from(
      sql`(select created_at, sum(octet_length(sealed_texts)) over (order by created_at desc, id desc) as total
        from model_recordings)`,
    )
    .where(sql`total > ${sql.placeholder("max_bytes")}`),
);

/** Deletes a slice small enough not to delay other writes. */
export const deleteOldRecordings = statement<{ before: number }>(
  build
    .delete(model_recordings)
    .where(
      inArray(
        model_recordings.id,
        build
          .select({ id: model_recordings.id })
          .from(model_recordings)
          .where(isOld)
          .orderBy(asc(model_recordings.created_at))
          .limit(50),
      ),
    ),
);
