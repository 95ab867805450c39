// Reservations of running model calls: a call's expected usage is reserved before it begins and settled in the ledger when it ends.
import { asc, lt, sql } from "drizzle-orm";
import type { CallScope } from "../budgets/budgets.ts";
import { addSpent } from "../budgets/periods.ts";
import { build, deleteBy, insertInto, query, type Statement } from "../engine/sql.ts";
import { type CallOutcome, model_reservations, model_spend } from "../schema/model-spend.ts";

export type ReservationRow = typeof model_reservations.$inferSelect;

/** Reserves a call's expected usage, in one batch with the guards of its budgets. */
export const insertReservation = insertInto(model_reservations);

export type Settlement = {
  readonly outcome: CallOutcome;
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cache_read_tokens: number;
  readonly cache_creation_tokens: number;
  /** Null if the model has no price. */
  readonly cost_micros: number | null;
  readonly is_estimated: boolean;
  readonly first_byte_ms: number | null;
  readonly duration_ms: number | null;
  readonly provider_request_id: string;
  /** Empty if the call is not recorded. */
  readonly recording_id: string;
};

const insertLedgerRow = insertInto(model_spend);
const deleteReservation = deleteBy(model_reservations, model_reservations.id);

/** Ends a call by turning its reservation into a ledger row, exactly once. A second settlement is rejected as `stale`. */
export const settle = (reservation: ReservationRow, settlement: Settlement, now: number): Statement[] => [
  release(reservation),
  ...recordCall(toLedgerCall(reservation), settlement, now),
];

const toLedgerCall = ({
  id: _,
  reserved_micros: __,
  reserved_tokens: ___,
  created_at,
  alive_until,
  ...call
}: ReservationRow) => call;

/** The call in a ledger row: its user, purpose and model. */
export type LedgerCall = ReturnType<typeof toLedgerCall>;

/** Adds a call to the ledger, and to the periods of the budgets toward which it counts. */
export const recordCall = (call: LedgerCall, settlement: Settlement, now: number): Statement[] => {
  const { input_tokens, output_tokens, cache_read_tokens, cache_creation_tokens, cost_micros } = settlement;
  const tokens = input_tokens + output_tokens + cache_read_tokens + cache_creation_tokens;
  return [
    insertLedgerRow({ ...call, ...settlement, created_at: now }),
    addSpent(call satisfies CallScope, { cost_micros: cost_micros ?? 0, tokens }, now),
  ];
};

/** Releases the reservation of a call that used nothing. Rejected as `stale` if it was already settled. */
export const release = ({ id }: Pick<ReservationRow, "id">): Statement => ({ ...deleteReservation(id), expect: 1 });

/** Renews the reservations of running calls. */
export const renewReservations = (ids: readonly string[], alive_until: number): Statement => ({
  touches: [],
  sql: "update model_reservations set alive_until = ?2 where id = ?1",
  rows: ids.map((id) => [id, alive_until]),
});

/** Reservations that were not renewed since {before}, oldest first. */
export const listLostReservations = query(
  build
    .select()
    .from(model_reservations)
    .where(lt(model_reservations.alive_until, sql.placeholder("before")))
    .orderBy(asc(model_reservations.created_at), asc(model_reservations.id)),
);
