// The ledger entry of a gateway call: the possible cost is reserved before the call starts, and the usage is written before its response is
// complete.
import type { ModelLedger, OpenCall } from "#actors/chat/spending/ledger.ts";
import type { ReachedLimit } from "#actors/chat/spending/limits.ts";
import { EXPECTED_OUTPUT_TOKENS } from "#actors/chat/spending/metered-models.ts";
import { log } from "#base/log.ts";
import { pause } from "#base/retry.ts";
import { insertRecording } from "#db/chats/recordings.ts";
import type { LedgerCall, Settlement } from "#db/chats/reservations.ts";
import type { ProviderKind } from "#schema/chats/model-provider.ts";
import { computeCost } from "#src/llm/cost.ts";
import type { CallBody } from "#src/llm/gateway/call-body.ts";
import type { Recording } from "#src/llm/gateway/recording.ts";
import type { ModelUsage } from "#src/llm/model.ts";
import { costsMoney, findPrice, PAID_KINDS } from "#src/llm/prices.ts";
import type { DomainContext } from "../context.ts";
import type { Target } from "./names.ts";
import { sealRecording } from "./recordings.ts";

/** Who pays for a call, and where it comes from. */
export type Payer = {
  readonly user_id: string;
  readonly workspace_id: string;
  readonly key_id: string;
  /** For a person's token: their home organization, or empty if they have none. */
  readonly organization_id: string;
  readonly template_id: string;
  /** Empty unless a chat's coding agent is calling. */
  readonly chat_id: string;
  readonly root_chat_id: string;
};

/** Returns the price of a target; undefined if unknown. */
const findPriceFor = ({ provider, model, config }: Target) =>
  findPrice(provider.provider, model, config?.model_config.cost);

/** Returns whether a target's calls cost money, as far as known. */
export const isPaid = (target: Target): boolean => costsMoney(target.provider.provider, findPriceFor(target));

/** Maximum output tokens that one call may reserve over all its answers. */
const MAX_RESERVED_OUTPUT_TOKENS = 1_048_576;

/** Returns an upper estimate of a call's tokens at this kind of provider. */
export const estimateTokens = (
  body: Pick<CallBody, "prompt_tokens" | "answers" | "getMaxOutputTokens">,
  kind: ProviderKind,
) => {
  const max_output_tokens = body.getMaxOutputTokens(kind) ?? EXPECTED_OUTPUT_TOKENS;
  return {
    input_tokens: body.prompt_tokens,
    output_tokens: Math.min(max_output_tokens * body.answers, MAX_RESERVED_OUTPUT_TOKENS),
  };
};

/** Returns an upper estimate of a call's usage; 0 micros without a price. */
const estimateUse = (target: Target, body: CallBody) => {
  const likely = estimateTokens(body, target.provider.provider);
  return {
    micros: computeCost(likely, findPriceFor(target)) ?? 0,
    tokens: likely.input_tokens + likely.output_tokens,
  };
};

/**
 * Returns the targets that a limit in dollars can count, or all of them if no such limit applies. It cannot count a model that the caller
 * named and whose price is unknown (rule GW-6).
 */
export const listCountedTargets = async (
  { ledger }: Pick<Ledger, "ledger">,
  payer: Payer,
  targets: readonly Target[],
): Promise<readonly Target[]> => {
  const counted = targets.filter(
    (one) => one.isNamed || !PAID_KINDS.has(one.provider.provider) || findPriceFor(one) !== undefined,
  );
  return counted.length === targets.length || !(await ledger.hasDollarLimit(payer)) ? targets : counted;
};

const toLedgerCall = (payer: Payer, target: Target, { model: asked_model }: CallBody): LedgerCall => ({
  ...payer,
  kind: "gateway",
  provider_id: target.provider.id,
  model_config_id: target.config?.id ?? "",
  asked_model,
  model: target.model,
});

type Ledger = { readonly ledger: ModelLedger } & Pick<DomainContext, "clock">;

/**
 * How long a workspace's call waits while open calls may use up the rest of a budget. Coding agents give up quickly when they get an error.
 */
const HELD_TIMEOUT_MS = 60_000;
const [FIRST_INTERVAL_MS, MAX_INTERVAL_MS] = [100, 2_000];

/**
 * Reserves the possible usage of a call. Returns the limit when one is reached, in which case nothing is written. `signal` ends the wait.
 */
export const openCall = async (
  { ledger, clock }: Ledger,
  { payer, target, body, signal }: Pick<EndedCall, "payer" | "target" | "body"> & { readonly signal: AbortSignal },
): Promise<OpenCall | ReachedLimit> => {
  const mayWait = payer.workspace_id !== "";
  const giveUpAt = clock.monotonic() + HELD_TIMEOUT_MS;
  for (let interval = FIRST_INTERVAL_MS; ; interval = Math.min(interval * 2, MAX_INTERVAL_MS)) {
    const call = toLedgerCall(payer, target, body);
    const opened = await ledger.begin(call, () => estimateUse(target, body), { always: true });
    const isReserved = "isReserved" in opened && opened.isReserved;
    if (!(isReserved && mayWait) || clock.monotonic() >= giveUpAt) return opened;
    await pause(clock, interval, signal);
    // Nothing is reserved for a caller that has disconnected.
    if (signal.aborted) return opened;
  }
};

export type CallResult = Pick<Settlement, "outcome" | "first_byte_ms" | "duration_ms" | "provider_request_id"> & {
  /** As reported by the provider; undefined if it reported none. */
  readonly usage: ModelUsage | undefined;
  /** Bytes of text since the last usage report, to estimate the rest. */
  readonly text_bytes: number;
  /** Whether the provider may have started to answer: it was asked and has not rejected the call. */
  readonly was_begun: boolean;
  /** How far the answer was read: to its end, until it broke off, or until Slipway hung up on a paid model because the caller had left. */
  readonly read: "whole" | "broken" | "cut_short";
};

/** Approximate bytes of text per token. */
const BYTES_PER_TOKEN = 4;

/**
 * Returns a call's usage: as reported, or else estimated from its prompt and the streamed text. If the caller left and the report did not
 * arrive in time, the output counts as reserved, because hidden reasoning may have been billed. A rejected call has used nothing.
 */
const toUsage = (
  { target, body }: Pick<EndedCall, "target" | "body">,
  { usage, read, text_bytes, was_begun }: CallResult,
): { readonly usage: ModelUsage; readonly is_estimated: boolean } => {
  const isReported = usage !== undefined && (read === "whole" || (read === "broken" && text_bytes === 0));
  if (isReported || !was_begun) return { usage: usage ?? {}, is_estimated: false };
  const passedTokens = (usage?.output_tokens ?? 0) + Math.ceil(text_bytes / BYTES_PER_TOKEN);
  const reservedTokens = estimateTokens(body, target.provider.provider).output_tokens;
  const output_tokens = read === "cut_short" ? Math.max(passedTokens, reservedTokens) : passedTokens;
  return { usage: { input_tokens: body.prompt_tokens, ...usage, output_tokens }, is_estimated: true };
};

type EndedCall = {
  readonly payer: Payer;
  readonly target: Target;
  readonly body: CallBody;
  /** The recorded prompt and answer, if recording is enabled. */
  readonly recording: Recording | undefined;
};

/** Writes the call and its recording to the ledger and releases its reservation. */
export const endCall = async (
  { ledger, encryption, clock, recordingRetention }: Ledger & Pick<DomainContext, "encryption" | "recordingRetention">,
  open: OpenCall,
  { payer, target, body, recording }: EndedCall,
  ended: CallResult,
): Promise<void> => {
  const { usage, is_estimated } = toUsage({ target, body }, ended);
  const { outcome, first_byte_ms, duration_ms, provider_request_id } = ended;
  const recorded =
    recording &&
    (await sealRecording(encryption, payer.user_id, recording.texts, clock.now()).catch((error) => {
      // The call's usage is settled even if recording fails.
      log("models").error("cannot record a model call: {error}", { error });
      return undefined;
    }));
  const isFree = usage.input_tokens === undefined && usage.output_tokens === undefined;
  const settlement: Settlement = {
    outcome,
    first_byte_ms,
    duration_ms,
    provider_request_id,
    recording_id: recorded?.id ?? "",
    is_estimated,
    input_tokens: usage.input_tokens ?? 0,
    output_tokens: usage.output_tokens ?? 0,
    cache_read_tokens: usage.cache_read_tokens ?? 0,
    cache_creation_tokens: usage.cache_creation_tokens ?? 0,
    cost_micros: isFree ? 0 : computeCost(usage, findPriceFor(target)),
  };
  await ledger.end(open, toLedgerCall(payer, target, body), settlement, recorded ? [insertRecording(recorded)] : []);
  if (recorded) recordingRetention.onStored(recorded.sealed_texts.length);
};
