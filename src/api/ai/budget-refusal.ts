// The error for gateway callers when a budget is used up, or when calls in progress may use up the rest.
import type { ReachedLimit } from "#actors/chat/spending/limits.ts";
import { loadPause } from "#actors/chat/spending/warnings.ts";
import type { Store } from "#db/engine/store.ts";
import { formatAmount, formatBudgetName, formatBudgetTitle } from "#schema/ai/budget-words.ts";
import type { Refusal } from "#src/llm/gateway/refusal.ts";

/** Seconds until some of the calls in progress may have ended. */
const HELD_RETRY_S = 5;

/** Returns the 429 with the budget, its amount, and who can raise it. */
export const budgetRefusal = async ({ store }: { readonly store: Store }, reached: ReachedLimit): Promise<Refusal> => {
  const pause = await loadPause(store, reached);
  if (reached.isReserved) {
    const message = `The rest of ${formatBudgetName(pause)} is reserved for calls in progress. Try again when they are done.`;
    return { status: 429, code: "budget_exceeded", message, retry_after: HELD_RETRY_S };
  }
  const limit = formatAmount(pause.unit, pause.limit);
  const names = pause.deciders.slice(0, 3).map(({ name }) => name);
  const ask = names.length > 0 ? `${names.join(", ")} can raise it.` : "An administrator can raise it.";
  const message = `${formatBudgetTitle(pause)} is used up: ${limit}. It resets at ${pause.resets_at}. ${ask}`;
  return { status: 429, code: "budget_exceeded", message };
};
