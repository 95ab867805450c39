// Budgets in chats that a coding agent runs: the gateway rejects the agent's calls, and the chat asks whether to continue (rule BU-4).
import { log } from "#base/log.ts";
import type { Topics } from "#base/topics.ts";
import { findLedgerFields } from "#db/chats/spend.ts";
import type { Store } from "#db/engine/store.ts";
import type { Events } from "../../runtime/events.ts";
import type { ModelLedger } from "./ledger.ts";
import { BudgetUsedUp } from "./metered-models.ts";
import { loadPause } from "./warnings.ts";

type Deps = { readonly store: Store; readonly ledger: ModelLedger; readonly topics: Topics<Events> };
type PayingChat = { readonly chat_key: number; readonly owner_id: string };

export class AgentBudgets {
  readonly #deps: Deps;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /**
   * Returns a budget that is used up now. Returns undefined for none, and also when budgets cannot be read, because the gateway then
   * rejects calls itself.
   */
  async findUsedUp({ chat_key, owner_id }: PayingChat): Promise<BudgetUsedUp | undefined> {
    const { store, ledger } = this.#deps;
    try {
      const fields = await store.get(findLedgerFields({ chat: chat_key }));
      if (!fields) return undefined;
      const call = { ...fields, user_id: owner_id };
      const reached = await ledger.findUsedUp(call);
      return reached && new BudgetUsedUp(await loadPause(store, reached), () => ledger.isStillReached(call));
    } catch (error) {
      log("chats").warn("cannot read the budgets of a coding agent: {error}", { error });
      return undefined;
    }
  }

  /** Calls `listener` when the gateway rejects a call of this chat's agent. Returns a function to unsubscribe. */
  onRefused(chat_id: string, listener: () => void): () => void {
    return this.#deps.topics.subscribe("agent_refused", chat_id, listener);
  }
}
