// One call of the gateway in the ledger: what it may cost is reserved before it begins, and what it has used is written before its answer is complete.
import type { ModelLedger, OpenCall } from "#actors/chat/spending/ledger.ts";
import type { Reached } from "#actors/chat/spending/limits.ts";
import { EXPECTED_OUTPUT_TOKENS } from "#actors/chat/spending/metered-models.ts";
import type { LedgerCall, Settlement } from "#db/chats/reservations.ts";
import { computeCost } from "#src/llm/cost.ts";
import type { CallBody } from "#src/llm/gateway/call-body.ts";
import type { ModelUsage } from "#src/llm/model.ts";
import { findPrice } from "#src/llm/prices.ts";
import type { Target } from "./names.ts";

/** Who pays, and from where the call comes. */
export type Payer = {
  readonly user_id: string;
  readonly workspace_id: string;
  readonly key_id: string;
  /** Empty for a person's token: then the call counts for each organization of the person. */
  readonly organization_id: string;
  readonly template_id: string;
  /** Empty: no chat's coding agent calls. */
  readonly chat_id: string;
  readonly root_chat_id: string;
};

/** Returns the price of a target; undefined: nobody knows. */
const priceFor = ({ provider, model, config }: Target) =>
  findPrice(provider.provider, model, config?.model_config.cost);

/** Returns what a call may use at most, about; 0 micros without a price. */
const likelyUse = (target: Target, { prompt_tokens, max_output_tokens = EXPECTED_OUTPUT_TOKENS }: CallBody) => ({
  micros: computeCost({ input_tokens: prompt_tokens, output_tokens: max_output_tokens }, priceFor(target)) ?? 0,
  tokens: prompt_tokens + max_output_tokens,
});

const ledgerCall = (payer: Payer, target: Target, { model: asked_model }: CallBody): LedgerCall => ({
  ...payer,
  kind: "gateway",
  provider_id: target.provider.id,
  model_config_id: target.config?.id ?? "",
  asked_model,
  model: target.model,
});

type Ledger = { readonly ledger: ModelLedger };

/** Reserves what a call may use. Answers the limit when one is reached, and then nothing was written. */
export const openCall = (
  { ledger }: Ledger,
  payer: Payer,
  target: Target,
  body: CallBody,
): Promise<OpenCall | Reached> =>
  ledger.begin(ledgerCall(payer, target, body), () => likelyUse(target, body), { always: true });

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
  { ledger }: Ledger,
  open: OpenCall,
  { payer, target, body }: { readonly payer: Payer; readonly target: Target; readonly body: CallBody },
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
  await ledger.end(open, ledgerCall(payer, target, body), settlement);
};
