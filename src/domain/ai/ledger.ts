// One call of the gateway in the ledger: what it may cost is reserved before it begins, and what it has used is written before its answer is
// complete. A call that a crash has interrupted is settled at the next start with what was reserved.
import { loadSpendingLimit } from "#actors/chat/spending/limits.ts";
import type { Clock } from "#base/clock.ts";
import { uuid } from "#base/ids.ts";
import { log } from "#base/log.ts";
import { FIRST_PART } from "#base/parts.ts";
import { listReservations, type ReservationRow, reserve, type Settlement, settle } from "#db/chats/reservations.ts";
import { CommitError, type Store } from "#db/engine/store.ts";
import { computeCost } from "#src/llm/cost.ts";
import type { CallBody } from "#src/llm/gateway/call-body.ts";
import type { ModelUsage } from "#src/llm/model.ts";
import { findPrice } from "#src/llm/prices.ts";
import type { Target } from "./names.ts";

/** Tokens that an answer is expected to have at most when the caller sets no limit. */
const EXPECTED_OUTPUT_TOKENS = 16_384;

type Deps = { readonly store: Store; readonly clock: Clock };

/** Who pays, and from where the call comes. */
export type Payer = { readonly user_id: string; readonly workspace_id: string; readonly key_id: string };

export type SpendingExceeded = { readonly limit: number; readonly resets_at: number };

/** Returns the price of a target; undefined: nobody knows. */
const priceFor = ({ provider, model, config }: Target) =>
  findPrice(provider.provider, model, config?.model_config.cost);

/** Returns what a call may cost at most, about, in micros; 0 without a price. */
export const likelyCost = (target: Target, { prompt_tokens, max_output_tokens }: CallBody): number =>
  computeCost(
    { input_tokens: prompt_tokens, output_tokens: max_output_tokens ?? EXPECTED_OUTPUT_TOKENS },
    priceFor(target),
  ) ?? 0;

/** Reserves what a call may cost. Answers the limit when it is reached, and then nothing was written. */
export const openCall = async (
  deps: Deps,
  payer: Payer,
  target: Target,
  body: CallBody,
): Promise<ReservationRow | SpendingExceeded> => {
  const limit = await loadSpendingLimit(deps, payer.user_id);
  const row: ReservationRow = {
    id: uuid(),
    ...payer,
    provider_id: target.provider.id,
    model_config_id: target.config?.id ?? "",
    asked_model: body.model,
    model: target.model,
    reserved_micros: likelyCost(target, body),
    created_at: deps.clock.now(),
  };
  try {
    await deps.store.commit([reserve(row, limit)], undefined, FIRST_PART);
    return row;
  } catch (error) {
    const isReached = error instanceof CommitError && error.reason === "stale" && limit !== undefined;
    if (!isReached) throw error;
    return { limit: limit.limit, resets_at: limit.to };
  }
};

export type Ended = Pick<Settlement, "outcome" | "first_byte_ms" | "duration_ms" | "provider_request_id"> & {
  /** As the provider has told it; undefined: it has not. */
  readonly usage: ModelUsage | undefined;
  /** Bytes of the answer, to estimate what was not told. */
  readonly bytes: number;
};

/** Bytes of a streamed answer for each token, with the frame around it, about. */
const STREAM_BYTES_PER_TOKEN = 40;

/** Returns what a call has used: as told, else estimated from what has passed. An error of the provider has used nothing. */
export const toUsage = (
  body: Pick<CallBody, "prompt_tokens" | "streams">,
  { usage, outcome, bytes }: Pick<Ended, "usage" | "outcome" | "bytes">,
): { readonly usage: ModelUsage; readonly is_estimated: boolean } => {
  const isWhole = usage !== undefined && (outcome === "ok" || (usage.output_tokens ?? 0) > 0);
  if (isWhole) return { usage, is_estimated: false };
  if (bytes === 0 || (outcome === "failed" && usage === undefined)) return { usage: usage ?? {}, is_estimated: false };
  const output_tokens = Math.ceil(bytes / (body.streams ? STREAM_BYTES_PER_TOKEN : 4));
  return { usage: { input_tokens: body.prompt_tokens, ...usage, output_tokens }, is_estimated: true };
};

/** Writes the call into the ledger and gives its reservation back. */
export const endCall = async (
  { store, clock }: Deps,
  reserved: ReservationRow,
  target: Target,
  body: CallBody,
  ended: Ended,
): Promise<void> => {
  const { usage, is_estimated } = toUsage(body, ended);
  const { outcome, first_byte_ms, duration_ms, provider_request_id } = ended;
  const isFree = usage.input_tokens === undefined && usage.output_tokens === undefined;
  const settlement: Settlement = {
    outcome,
    first_byte_ms,
    duration_ms,
    provider_request_id,
    is_estimated,
    input_tokens: usage.input_tokens ?? 0,
    output_tokens: usage.output_tokens ?? 0,
    cache_read_tokens: usage.cache_read_tokens ?? 0,
    cache_creation_tokens: usage.cache_creation_tokens ?? 0,
    cost_micros: isFree ? 0 : computeCost(usage, priceFor(target)),
  };
  const used = {
    ...reserved,
    provider_id: target.provider.id,
    model_config_id: target.config?.id ?? "",
    model: target.model,
  };
  await store.commit(settle(used, settlement, clock.now()), undefined, FIRST_PART);
};

/** Settles calls that a crash has interrupted. Called each time a node becomes the first one, before it answers calls. */
export const settleLostCalls = async ({ store, clock }: Deps): Promise<void> => {
  const lost = await store.all(listReservations());
  if (lost.length === 0) return;
  const nothing = { input_tokens: 0, output_tokens: 0, cache_read_tokens: 0, cache_creation_tokens: 0 };
  for (const row of lost) {
    const settlement: Settlement = {
      ...nothing,
      outcome: "lost",
      cost_micros: row.reserved_micros,
      is_estimated: true,
      first_byte_ms: null,
      duration_ms: null,
      provider_request_id: "",
    };
    await store.commit(settle(row, settlement, clock.now()), undefined, FIRST_PART);
  }
  log("models").warn("{count} model calls were interrupted by the end of the server and count as reserved", {
    count: lost.length,
  });
};
