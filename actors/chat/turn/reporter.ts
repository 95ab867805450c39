// Sends a turn's reports to the chat's actor.
import { HookFailure } from "#src/hooks/protocol.ts";
import type { Messages } from "../../runtime/directory.ts";
import { toHookError } from "../hooks/effects.ts";
import type { NewMessage } from "../machine/decision.ts";
import type { StartedAttempt, TurnReports } from "../messages.ts";
import { retryUntilAnswered } from "../until-answered.ts";
import type { TurnDeps } from "./deps.ts";

/** "none": the history is unchanged. A number: the new history version, from which the next attempt continues. "over": the turn has ended. */
export type HistoryOutcome = "none" | "over" | number;

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

  /** Sends a report until the actor answers it. Returns `stale` if the turn is stopped before. */
  report<K extends keyof Messages<TurnReports>>(
    message: K,
    args: Messages<TurnReports>[K]["args"],
  ): Promise<Messages<TurnReports>[K]["reply"] | "stale"> {
    const { clock, chats } = this.#deps;
    return retryUntilAnswered(clock, this.signal, () => chats().ask(this.#chat_id, message, args));
  }

  /** Adds rows to the history between two attempts of the turn. */
  async addRows({ fence }: StartedAttempt, messages: readonly NewMessage[]): Promise<HistoryOutcome> {
    const then = "continue";
    const reported = await this.report("reportStep", { fence, messages, then });
    return reported === "stale" ? "over" : reported.history_version;
  }

  /**
   * Returns the hooks' decision. If a hook gives no valid decision, fails the turn and stores `messages`. Returns undefined once the turn is
   * over.
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
      await this.report("reportStep", { fence, messages, then, error: toHookError(error) });
      return undefined;
    }
  }
}
