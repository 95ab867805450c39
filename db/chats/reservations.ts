// Calls of the model gateway that are under way: what each may cost is reserved before it begins and settled in the ledger when it ends.
import { asc, sql } from "drizzle-orm";
import { build, deleteBy, given, insertInto, query, type Statement } from "../engine/sql.ts";
import { type CallOutcome, model_reservations, model_spend } from "../schema/model-spend.ts";

export type ReservationRow = typeof model_reservations.$inferSelect;

/** A limit of spending: in micros, for calls from a time up to, but without, another. */
export type SpendingLimit = { readonly limit: number; readonly from: number; readonly to: number };

const insertReservation = insertInto(model_reservations);

/**
 * Reserves what a call may cost. With a limit the batch is refused as `stale` once what was spent and what is reserved reach it, so that
 * nobody exceeds a limit by more than one reservation.
 */
export const reserve = (row: ReservationRow, limit: SpendingLimit | undefined): Statement => {
  if (!limit) return insertReservation(row);
  return {
    touches: [],
    expect: 1,
    alone: "spending",
    sql: `insert into model_reservations
        (id, user_id, workspace_id, key_id, provider_id, model_config_id, asked_model, model, reserved_micros, created_at)
      select cast(?1 as text), cast(?2 as text), cast(?3 as text), cast(?4 as text), cast(?5 as text), cast(?6 as text),
        cast(?7 as text), cast(?8 as text), cast(?9 as bigint), cast(?10 as bigint)
      where coalesce((select sum(cost_micros) from model_spend where user_id = ?2 and created_at >= ?12 and created_at < ?13), 0)
        + coalesce((select sum(reserved_micros) from model_reservations where user_id = ?2), 0) < ?11`,
    rows: [
      [
        ...[row.id, row.user_id, row.workspace_id, row.key_id, row.provider_id, row.model_config_id],
        ...[row.asked_model, row.model, row.reserved_micros, row.created_at, limit.limit, limit.from, limit.to],
      ],
    ],
  };
};

export type Settlement = {
  readonly outcome: CallOutcome;
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cache_read_tokens: number;
  readonly cache_creation_tokens: number;
  /** Null: the model has no price. */
  readonly cost_micros: number | null;
  readonly is_estimated: boolean;
  readonly first_byte_ms: number | null;
  readonly duration_ms: number | null;
  readonly provider_request_id: string;
};

const insertLedgerRow = insertInto(model_spend);
const deleteReservation = deleteBy(model_reservations, model_reservations.id);

/** Ends a call: its reservation becomes a row of the ledger, once. A second settlement is refused as `stale`. */
export const settle = (reserved: ReservationRow, settlement: Settlement, now: number): Statement[] => {
  const { id, reserved_micros: _, created_at: __, ...call } = reserved;
  return [
    { ...deleteReservation(id), expect: 1 },
    insertLedgerRow({ ...call, ...settlement, kind: "gateway", chat_id: "", root_chat_id: "", created_at: now }),
  ];
};

/** Calls that have not ended, the oldest first. */
export const listReservations = query(
  build.select().from(model_reservations).orderBy(asc(model_reservations.created_at), asc(model_reservations.id)),
);

/** What the open calls of a user may cost, in micros: {user_id}. */
export const sumReserved = query(
  build
    .select({ reserved: sql<number>`coalesce(sum(${model_reservations.reserved_micros}), 0)`.as("reserved") })
    .from(model_reservations)
    .where(given(model_reservations.user_id)),
);
