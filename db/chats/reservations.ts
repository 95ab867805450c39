// Model calls that are under way: what each may use is reserved before it begins and settled in the ledger when it ends.
import { asc, lt, sql } from "drizzle-orm";
import type { CallPlace } from "../budgets/budgets.ts";
import { addSpent } from "../budgets/periods.ts";
import { build, deleteBy, insertInto, query, type Statement } from "../engine/sql.ts";
import { type CallOutcome, model_reservations, model_spend } from "../schema/model-spend.ts";

export type ReservationRow = typeof model_reservations.$inferSelect;

/** Reserves what a call may use, in one batch with the guards of its budgets. */
export const insertReservation = insertInto(model_reservations);

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
  /** Empty: nothing is recorded of it. */
  readonly recording_id: string;
};

const insertLedgerRow = insertInto(model_spend);
const deleteReservation = deleteBy(model_reservations, model_reservations.id);

/** Ends a call: its reservation becomes a row of the ledger, once. A second settlement is refused as `stale`. */
export const settle = (reserved: ReservationRow, settlement: Settlement, now: number): Statement[] => [
  release(reserved),
  ...recordCall(toLedgerCall(reserved), settlement, now),
];

const toLedgerCall = ({
  id: _,
  reserved_micros: __,
  reserved_tokens: ___,
  created_at,
  alive_until,
  ...call
}: ReservationRow) => call;

/** The call of a row of the ledger: who made it, for what, of which model. */
export type LedgerCall = ReturnType<typeof toLedgerCall>;

/** Writes a call into the ledger, and into the periods of the budgets that it counts for. */
export const recordCall = (call: LedgerCall, settlement: Settlement, now: number): Statement[] => {
  const { input_tokens, output_tokens, cache_read_tokens, cache_creation_tokens, cost_micros } = settlement;
  const tokens = input_tokens + output_tokens + cache_read_tokens + cache_creation_tokens;
  return [
    insertLedgerRow({ ...call, ...settlement, created_at: now }),
    addSpent(call satisfies CallPlace, { cost_micros: cost_micros ?? 0, tokens }, now),
  ];
};

/** Gives a reservation back for a call that has used nothing. Refused as `stale` when it was settled. */
export const release = ({ id }: Pick<ReservationRow, "id">): Statement => ({ ...deleteReservation(id), expect: 1 });

/** Keeps the reservations of calls that are alive. */
export const renewReservations = (ids: readonly string[], alive_until: number): Statement => ({
  touches: [],
  sql: "update model_reservations set alive_until = ?2 where id = ?1",
  rows: ids.map((id) => [id, alive_until]),
});

/** Calls that nobody has renewed since {before}, the oldest first. */
export const listLostReservations = query(
  build
    .select()
    .from(model_reservations)
    .where(lt(model_reservations.alive_until, sql.placeholder("before")))
    .orderBy(asc(model_reservations.created_at), asc(model_reservations.id)),
);
