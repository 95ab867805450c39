// Sends a turn's reports to its chat's actor. Every report has the history and attempt it belongs to; a stale one ends the turn.
import { HookFailure } from "#src/hooks/protocol.ts";
import type { Messages } from "../../runtime/directory.ts";
import { toHookError } from "../hooks/effects.ts";
import type { NewMessage } from "../machine/decision.ts";
import type { StartedAttempt, TurnReports } from "../messages.ts";
import { retryUntilAnswered } from "../until-answered.ts";
import type { TurnDeps } from "./deps.ts";

export class Reporter {
  readonly #deps: Pick<TurnDeps, "clock" | "chats">;
  readonly #chat_id: string;
  /** Aborts when the turn is stopped. */
  readonly signal: AbortSignal;

  constructor(deps: Pick<TurnDeps, "clock" | "chats">, chat_id: string, signal: AbortSignal) {
    this.#deps = deps;
    this.#chat_id = chat_id;
    this.signal = signal;
  }

  /** Retries until the actor has answered. Returns "stale" also when the turn is stopped. */
  report<K extends keyof Messages<TurnReports>>(
    message: K,
    args: Messages<TurnReports>[K]["args"],
  ): Promise<Messages<TurnReports>[K]["reply"] | "stale"> {
    const { clock, chats } = this.#deps;
    return retryUntilAnswered(clock, this.signal, () => chats().ask(this.#chat_id, message, args));
  }

  /**
   * Returns the hooks' decision. Returns undefined once the turn is over: it was stopped, or it failed without a valid decision, with
   * `messages` in the history.
   */
  async askHooks<T>(
    { fence }: StartedAttempt,
    messages: readonly NewMessage[],
    ask: () => Promise<T>,
  ): Promise<T | undefined> {
    try {
      return await ask();
    } catch (error) {
      if (this.signal.aborted) return undefined;
      if (!(error instanceof HookFailure)) throw error;
      const then = "fail";
      await this.report("reportStep", { fence, messages: messages, then, error: toHookError(error) });
      return undefined;
    }
  }
}
