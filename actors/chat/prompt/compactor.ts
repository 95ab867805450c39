// Makes the history of a turn shorter when it is due: asks a model for a summary, outside of the mailbox; turn.ts stores the rows. What
// fails is logged and the turn continues with the history as it is, unless the owner has asked for it (rules CM-1 to CM-9).
import { uuid } from "#base/ids.ts";
import { log } from "#base/log.ts";
import { findClearing, listPrompts } from "#db/chats/messages.ts";
import { readCompactionThresholds } from "#db/chats/settings.ts";
import type { Store } from "#db/engine/store.ts";
import { ModelError } from "#src/llm/model.ts";
import { organizationModel } from "../background/organization-model.ts";
import { askModel, type SideModel } from "../background/side-model.ts";
import { isHookRow } from "../hooks/effects.ts";
import type { NewMessage } from "../machine/decision.ts";
import type { StartedAttempt } from "../messages.ts";
import {
  ASK_FOR_SUMMARY,
  compactedRows,
  computeThreshold,
  formatRecord,
  type HistoryRow,
  isDue,
  NEVER,
  type Source,
  selectBody,
} from "./compact.ts";

/** Times in one turn: a history that does not get shorter is not tried again and again. */
export const MAX_COMPACTIONS = 3;
const LIMITS = { time_ms: 300_000, longest: 40_000 };
/** Messages of people that are looked through for their own words. */
const PROMPTS = 2_000;

/** How often it was done, and how often it failed, since the server was started. */
export type CompactionCounts = { done: number; failed: number };

/** `hook_context`: of a hook; `instructions`: of the chat's owner. Either may be empty. */
type Asked = { readonly source: Source; readonly hook_context?: string; readonly instructions?: string };

type Deps = SideModel & { readonly store: Store; readonly compactions: CompactionCounts };

export class Compactor {
  readonly #deps: Deps;
  readonly #chat_id: string;
  #tries = 0;
  /** Then it is not tried again in this turn, unless the model refuses the history. */
  #hasFailed = false;
  #threshold = 0;
  readonly call_id = `compaction-${uuid()}`;

  constructor(deps: Deps, chat_id: string) {
    this.#deps = deps;
    this.#chat_id = chat_id;
  }

  /** `isForced`: the model has refused the history as too long. */
  async isWanted(begun: StartedAttempt, history: readonly HistoryRow[], isForced: boolean): Promise<boolean> {
    const { context_limit } = begun;
    if (this.#tries >= MAX_COMPACTIONS || context_limit <= 0) return false;
    this.#threshold = await this.#thresholdFor(begun);
    if (!isForced) return !this.#hasFailed && isDue(history, context_limit, this.#threshold);
    return this.#threshold < NEVER && selectBody(history).some(({ replayed }) => replayed === null);
  }

  /** The rows to store; `hook_context` is what a hook wants the summary to heed. Undefined when there is no summary. Rejects with the reason of `stop` alone. */
  async rows(
    begun: StartedAttempt,
    history: readonly HistoryRow[],
    stop: AbortSignal,
    hook_context = "",
  ): Promise<NewMessage[] | undefined> {
    this.#tries += 1;
    try {
      return await this.summed(begun, history, stop, { source: "automatic", hook_context });
    } catch (error) {
      stop.throwIfAborted();
      this.#hasFailed = true;
      log("chats").warn("the history of chat {chat_id} was not made shorter: {error}", {
        chat_id: this.#chat_id,
        error,
      });
      return undefined;
    }
  }

  /** The rows to store. Throws what the model's failure was, and the reason of `stop`. */
  async summed(
    begun: StartedAttempt,
    history: readonly HistoryRow[],
    stop: AbortSignal,
    asked: Asked,
  ): Promise<NewMessage[]> {
    const { compactions } = this.#deps;
    try {
      const rows = await this.#summed(begun, history, stop, asked);
      compactions.done += 1;
      return rows;
    } catch (error) {
      stop.throwIfAborted();
      compactions.failed += 1;
      throw error;
    }
  }

  async #summed(
    begun: StartedAttempt,
    history: readonly HistoryRow[],
    stop: AbortSignal,
    { source, hook_context = "", instructions = "" }: Asked,
  ): Promise<NewMessage[]> {
    const { clock } = this.#deps;
    const { model_id, context_limit, chat_key, about } = begun;
    if (source === "manual") this.#threshold = await this.#thresholdFor(begun);
    const wanted = await organizationModel(this.#deps, about.organization_id, "compaction");
    const model =
      wanted === undefined || wanted === "unusable" ? { id: model_id, provider: begun.provider } : wanted.model;
    const errand = { ...begun, model_id: model.id, provider: model.provider, kind: "compaction" as const };
    const asked = {
      system: [
        ASK_FOR_SUMMARY,
        hook_context,
        instructions === ""
          ? ""
          : `${ASKED}
${instructions}`,
      ]
        .filter(Boolean)
        .join("\n\n"),
      text: formatRecord(history, context_limit),
    };
    const { text, usage } = await askModel(this.#deps, errand, asked, stop, LIMITS);
    const summary = text.trim();
    if (summary === "") throw new ModelError("generic", "The model returned no summary.", errand);
    const of = { summary, source, instructions, history, context_limit, threshold: this.#threshold };
    const prompts = await this.#loadPrompts(chat_key, history);
    return compactedRows({ ...of, model_id: model.id, usage, call_id: this.call_id, prompts, now: clock.now() });
  }

  /** What people have written since the chat was cleared, oldest first, but for what nobody has answered. */
  async #loadPrompts(chat: number, history: readonly HistoryRow[]): Promise<string[]> {
    const { store } = this.#deps;
    const after = (await store.get(findClearing({ chat })))?.id ?? 0;
    const prompts = await store.scan(listPrompts({ chat, after, limit: PROMPTS }));
    const tail = history.slice(history.findLastIndex(({ role }) => role !== "user") + 1);
    const unanswered = tail.filter((row) => !isHookRow(row)).length;
    const answered = prompts.slice(Math.min(unanswered, prompts.length)).reverse();
    return answered.map(({ content }) =>
      content.map(({ type, text = "" }) => (type === "text" ? text : "")).join("\n"),
    );
  }

  async #thresholdFor({ about, model_id, compression_threshold, context_limit }: StartedAttempt): Promise<number> {
    const own = await readCompactionThresholds(this.#deps.store, about.owner_id);
    return computeThreshold(own.find(([id]) => id === model_id)?.[1], compression_threshold, context_limit);
  }
}

const ASKED = "The person asks of these notes:";
