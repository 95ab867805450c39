// Adds rows to the history before a turn's first model call: a changed context, and the hooks' answers to the start of a session. Used by
// turn.ts.
import type { Clock } from "#base/clock.ts";
import type { Store } from "#db/engine/store.ts";
import type { TurnHooks } from "../hooks/turn-hooks.ts";
import type { NewMessage } from "../machine/decision.ts";
import type { StartedAttempt } from "../messages.ts";
import type { HistoryRow } from "../prompt/compact.ts";
import { buildContextRows } from "../prompt/context-parts.ts";
import { retryUntilAnswered } from "../until-answered.ts";
import type { Reporter } from "./reporter.ts";

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

  /** Runs once in a turn. A number: the new version of the history; "none": nothing was added; "over": the turn has ended. */
  async store(attempt: StartedAttempt, history: readonly HistoryRow[]): Promise<"none" | "over" | number> {
    const messages = await this.#reporter.askHooks(attempt, [], () => this.#rows(attempt, history));
    if (!messages) return "over";
    if (messages.length === 0) return "none";
    const then = "continue";
    const reported = await this.#reporter.report("reportStep", { fence: attempt.fence, messages, then });
    return reported === "stale" ? "over" : reported.history_version;
  }

  /** Throws `HookFailure`, or the reason of the turn's signal once it was stopped. */
  async #rows(attempt: StartedAttempt, history: readonly HistoryRow[]): Promise<readonly NewMessage[]> {
    if (this.#isDone) return [];
    this.#isDone = true;
    const { store, clock } = this.#deps;
    const context = await retryUntilAnswered(clock, this.#reporter.signal, () =>
      buildContextRows(store, attempt.chat_key),
    );
    if (context === "stale") throw this.#reporter.signal.reason;
    return [...context, ...(await this.#hooks.onSessionStart(attempt, history))];
  }
}
