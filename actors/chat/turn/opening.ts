// What a turn puts into the history before its first model call: what the chat goes by, where that is new, and what hooks say to the
// beginning of a session. Used by turn.ts, which stores it.
import type { Clock } from "#base/clock.ts";
import type { Store } from "#db/engine/store.ts";
import type { TurnHooks } from "../hooks/turn-hooks.ts";
import type { NewMessage } from "../machine/decision.ts";
import type { StartedAttempt } from "../messages.ts";
import type { HistoryRow } from "../prompt/compact.ts";
import { contextRows } from "../prompt/context-parts.ts";
import { untilAnswered } from "../until-answered.ts";

type Deps = { readonly store: Store; readonly clock: Clock };

export class Opening {
  readonly #deps: Deps;
  readonly #hooks: TurnHooks;
  readonly #signal: AbortSignal;
  #isDone = false;

  constructor(deps: Deps, hooks: TurnHooks, signal: AbortSignal) {
    this.#deps = deps;
    this.#hooks = hooks;
    this.#signal = signal;
  }

  /** The rows, once in a turn. Throws `HookFailure`, and the reason of the turn's signal once it was stopped. */
  async rows(begun: StartedAttempt, history: readonly HistoryRow[]): Promise<readonly NewMessage[]> {
    if (this.#isDone) return [];
    this.#isDone = true;
    const { store, clock } = this.#deps;
    const context = await untilAnswered(clock, this.#signal, () => contextRows(store, begun.chat_key));
    if (context === "stale") throw this.#signal.reason;
    return [...context, ...(await this.#hooks.sessionStart(begun, history))];
  }
}
