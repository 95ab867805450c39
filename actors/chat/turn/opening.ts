// Adds rows to the history before a turn's first model call: changes of the workspace's context, and the hooks' answers to the start of a
// session. Used by turn.ts.
import type { Clock } from "#base/clock.ts";
import type { Store } from "#db/engine/store.ts";
import type { TurnHooks } from "../hooks/turn-hooks.ts";
import type { NewMessage } from "../machine/decision.ts";
import type { StartedAttempt } from "../messages.ts";
import type { HistoryRow } from "../prompt/compact.ts";
import { buildContextRows } from "../prompt/context-parts.ts";
import { retryUntilAnswered } from "../until-answered.ts";
import type { HistoryOutcome, Reporter } from "./reporter.ts";

type Deps = { readonly store: Store; readonly clock: Clock };

export class Opening {
  readonly #deps: Deps;
  readonly #hooks: TurnHooks;
  readonly #reporter: Reporter;
  #isDone = false;

  constructor(deps: Deps, hooks: TurnHooks, reporter: Reporter) {
    this.#deps = deps;
    this.#hooks = hooks;
    this.#reporter = reporter;
  }

  /** Adds the rows at the first call in a turn. Later calls add none. */
  async addRows(attempt: StartedAttempt, history: readonly HistoryRow[]): Promise<HistoryOutcome> {
    if (this.#isDone) return "none";
    this.#isDone = true;
    const rows = await this.#reporter.askHooks(attempt, [], () => this.#buildRows(attempt, history));
    if (!rows) return "over";
    return rows.length === 0 ? "none" : this.#reporter.addRows(attempt, rows);
  }

  /** Throws `HookFailure`, or the reason of the turn's signal once the turn was stopped. */
  async #buildRows(attempt: StartedAttempt, history: readonly HistoryRow[]): Promise<readonly NewMessage[]> {
    const { store, clock } = this.#deps;
    const context = await retryUntilAnswered(clock, this.#reporter.signal, () =>
      buildContextRows(store, attempt.chat_key),
    );
    if (context === "stale") throw this.#reporter.signal.reason;
    return [...context, ...(await this.#hooks.onSessionStart(attempt, history))];
  }
}
