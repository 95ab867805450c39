// The gateway's own errors: why it does not forward a call, or what went wrong with a forwarded one.

import type { ReachedLimit } from "#actors/chat/spending/limits.ts";
import { loadPause } from "#actors/chat/spending/warnings.ts";
import { AppError } from "#base/errors.ts";
import { log } from "#base/log.ts";
import { shareOfMemory } from "#base/system/memory.ts";
import { CommitError, type Store } from "#db/engine/store.ts";
import { formatAmount, formatBudgetName, formatBudgetTitle } from "#schema/ai/budget-words.ts";
import { CallBodyError } from "#src/llm/gateway/call-body.ts";
import type { Refusal } from "#src/llm/gateway/refusal.ts";

const MIB = 1024 * 1024;
/** Maximum size of a call's body: reading it takes several times as much memory. */
export const MAX_BODY_BYTES = Math.min(64 * MIB, Math.max(16 * MIB, shareOfMemory(1 / 32)));
/** Maximum size of a body without a declared length, whose memory is reserved before it is read. */
export const MAX_UNDECLARED_BYTES = 8 * MIB;

/** The response after a caller has disconnected, which is not sent. */
export const CALLER_LEFT: Refusal = { status: 408, code: "canceled", message: "The caller disconnected." };

/** Returns the 401 for a caller that loses its access during a call. */
export const toCanceled = (reason: string): Refusal => ({
  status: 401,
  code: "invalid_api_key",
  message: `The call was canceled: ${reason}.`,
});

/** Returns the 502 for a provider's response that was interrupted or cannot be read. */
export const toUnreadable = (provider: string): Refusal => ({
  status: 502,
  code: "provider_unreadable",
  message: `The response from the model provider ${provider} was interrupted or could not be read.`,
});

/** Returns the 404 for a model that no provider has. */
export const toUnknownModel = (model: string): Refusal => ({
  status: 404,
  code: "model_not_found",
  message: `The model "${model.slice(0, 100)}" is not available through this gateway. Use a name from the model list (GET models).`,
});

/** Returns the 403 for a model without a price under a spending limit. */
export const toMissingPrice = (model: string): Refusal => ({
  status: 403,
  code: "model_without_price",
  message: `The model "${model.slice(0, 100)}" has no price, so it cannot be used under your spending limit. Ask an administrator to set its price.`,
});

/** Returns the error for what was thrown while a call was handled. */
export const toRefusal = (error: unknown, request: Request): Refusal => {
  if (error instanceof CallBodyError) return { status: 400, code: "invalid_request", message: error.message };
  if (error instanceof AppError && error.kind === "too_large") {
    return { status: 413, code: "request_too_large", message: `${error.message} ${error.detail}`.trim() };
  }
  if (error instanceof AppError && error.kind === "unsupported_media") {
    return { status: 415, code: "unsupported_media_type", message: `${error.message} ${error.detail ?? ""}`.trim() };
  }
  if (error instanceof AppError && error.kind === "overloaded") {
    return { status: 503, code: "unavailable", message: error.message, retry_after: 1 };
  }
  if (error instanceof CommitError) {
    return {
      status: 503,
      code: "unavailable",
      message: "The call could not be recorded in the ledger. Try again.",
      retry_after: 1,
    };
  }
  // Only name and message, because a stack can contain lines of the request.
  if (!request.signal.aborted) log("models").error("a gateway call failed: {error}", { error: String(error) });
  return { status: 500, code: "internal_error", message: "The gateway failed. Try again." };
};

/** Seconds until some of the calls in progress may have ended. */
const RESERVED_RETRY_AFTER_S = 5;

/** Returns the 429 with the budget, its amount, and who can raise it. */
export const toBudgetRefusal = async (
  { store }: { readonly store: Store },
  reached: ReachedLimit,
): Promise<Refusal> => {
  const pause = await loadPause(store, reached);
  if (reached.isReserved) {
    const message = `The rest of ${formatBudgetName(pause)} is reserved for calls in progress. Try again when they are done.`;
    return { status: 429, code: "budget_exceeded", message, retry_after: RESERVED_RETRY_AFTER_S };
  }
  const limit = formatAmount(pause.unit, pause.limit);
  const names = pause.deciders.slice(0, 3).map(({ name }) => name);
  const advice = names.length > 0 ? `${names.join(", ")} can raise it.` : "An administrator can raise it.";
  const message = `${formatBudgetTitle(pause)} is used up: ${limit}. It resets at ${pause.resets_at}. ${advice}`;
  return { status: 429, code: "budget_exceeded", message };
};
