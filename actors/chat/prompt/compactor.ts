// Compacts a turn's history when due: asks a model for a summary, outside of the mailbox. turn.ts stores the rows. Failures are logged
// and the turn continues with the uncompacted history, unless the owner requested the compaction (rules CM-1 to CM-9).
import { uuid } from "#base/ids.ts";
import { log } from "#base/log.ts";
import { findClearing, listPrompts } from "#db/chats/messages.ts";
import { readCompactionThresholds } from "#db/chats/settings.ts";
import type { Store } from "#db/engine/store.ts";
import { ModelError } from "#src/llm/model.ts";
import { resolveOrganizationModel } from "../background/organization-model.ts";
import { askModel, type SideModelDeps } from "../background/side-model.ts";
import { isHookRow } from "../hooks/effects.ts";
import type { NewMessage } from "../machine/decision.ts";
import type { StartedAttempt } from "../messages.ts";
import {
  computeThreshold,
  formatRecord,
  type HistoryRow,
  isDue,
  NEVER,
  type Source,
  SUMMARY_PROMPT,
  selectBody,
  toCompactionRows,
} from "./compact.ts";

/** Maximum compactions per turn, in case the history does not get shorter. */
export const MAX_COMPACTIONS = 3;
const LIMITS = { time_ms: 300_000, longest: 40_000 };
/** Maximum messages of people that are read for excerpts. */
const MAX_PROMPTS = 2_000;

/** Successful and failed compactions since the server started. */
export type CompactionCounts = { done: number; failed: number };

/** `hook_context`: from a hook; `instructions`: from the chat's owner. Either may be empty. */
type SummaryRequest = { readonly source: Source; readonly hook_context?: string; readonly instructions?: string };

type Deps = SideModelDeps & { readonly store: Store; readonly compactions: CompactionCounts };

export class Compactor {
  readonly #deps: Deps;
  readonly #chat_id: string;
  #tries = 0;
  /** After a failure, retries in this turn only if the model rejects the history. */
  #hasFailed = false;
  #threshold = 0;
  readonly call_id = `compaction-${uuid()}`;

  constructor(deps: Deps, chat_id: string) {
    this.#deps = deps;
    this.#chat_id = chat_id;
  }

  /** `isForced`: the model rejected the history as too long. */
  async isWanted(attempt: StartedAttempt, history: readonly HistoryRow[], isForced: boolean): Promise<boolean> {
    const { context_limit } = attempt;
    if (this.#tries >= MAX_COMPACTIONS || context_limit <= 0) return false;
    this.#threshold = await this.#loadThreshold(attempt);
    if (!isForced) return !this.#hasFailed && isDue(history, context_limit, this.#threshold);
    return this.#threshold < NEVER && selectBody(history).some(({ replayed }) => replayed === null);
  }

  /**
   * Returns the rows to store, or undefined without a summary. `hook_context` is a hook's text for the summary. Rejects only with the
   * reason of `stop`.
   */
  async rows(
    attempt: StartedAttempt,
    history: readonly HistoryRow[],
    stop: AbortSignal,
    hook_context = "",
  ): Promise<NewMessage[] | undefined> {
    this.#tries += 1;
    try {
      return await this.summarize(attempt, history, stop, { source: "automatic", hook_context });
    } catch (error) {
      stop.throwIfAborted();
      this.#hasFailed = true;
      log("chats").warn("cannot compact the history of chat {chat_id}: {error}", {
        chat_id: this.#chat_id,
        error,
      });
      return undefined;
    }
  }

  /** Returns the rows to store. Throws the model's failure, or the reason of `stop`. */
  async summarize(
    attempt: StartedAttempt,
    history: readonly HistoryRow[],
    stop: AbortSignal,
    requested: SummaryRequest,
  ): Promise<NewMessage[]> {
    const { compactions } = this.#deps;
    try {
      const rows = await this.#buildRows(attempt, history, stop, requested);
      compactions.done += 1;
      return rows;
    } catch (error) {
      stop.throwIfAborted();
      compactions.failed += 1;
      throw error;
    }
  }

  async #buildRows(
    attempt: StartedAttempt,
    history: readonly HistoryRow[],
    stop: AbortSignal,
    { source, hook_context = "", instructions = "" }: SummaryRequest,
  ): Promise<NewMessage[]> {
    const { clock } = this.#deps;
    const { model_id, context_limit, chat_key, chat } = attempt;
    if (source === "manual") this.#threshold = await this.#loadThreshold(attempt);
    const wanted = await resolveOrganizationModel(this.#deps, chat.organization_id, "compaction");
    const model =
      wanted === undefined || wanted === "unusable" ? { id: model_id, provider: attempt.provider } : wanted.model;
    const purpose = { ...attempt, model_id: model.id, provider: model.provider, kind: "compaction" as const };
    const requested = {
      system: [
        SUMMARY_PROMPT,
        hook_context,
        instructions === ""
          ? ""
          : `${OWNER_REQUEST_INTRO}
${instructions}`,
      ]
        .filter(Boolean)
        .join("\n\n"),
      text: formatRecord(history, context_limit),
    };
    const { text, usage } = await askModel(this.#deps, purpose, requested, stop, LIMITS);
    const summary = text.trim();
    if (summary === "") throw new ModelError("generic", "The model returned no summary.", purpose);
    const input = { summary, source, instructions, history, context_limit, threshold: this.#threshold };
    const prompts = await this.#loadPrompts(chat_key, history);
    return toCompactionRows({ ...input, model_id: model.id, usage, call_id: this.call_id, prompts, now: clock.now() });
  }

  /** Returns people's messages since the chat was cleared, oldest first, without unanswered ones. */
  async #loadPrompts(chat: number, history: readonly HistoryRow[]): Promise<string[]> {
    const { store } = this.#deps;
    const after = (await store.get(findClearing({ chat })))?.id ?? 0;
    const prompts = await store.scan(listPrompts({ chat, after, limit: MAX_PROMPTS }));
    const tail = history.slice(history.findLastIndex(({ role }) => role !== "user") + 1);
    const unanswered = tail.filter((row) => !isHookRow(row)).length;
    const answered = prompts.slice(Math.min(unanswered, prompts.length)).reverse();
    return answered.map(({ content }) =>
      content.map(({ type, text = "" }) => (type === "text" ? text : "")).join("\n"),
    );
  }

  async #loadThreshold({ chat, model_id, compression_threshold, context_limit }: StartedAttempt): Promise<number> {
    const thresholds = await readCompactionThresholds(this.#deps.store, chat.owner_id);
    return computeThreshold(thresholds.find(([id]) => id === model_id)?.[1], compression_threshold, context_limit);
  }
}

const OWNER_REQUEST_INTRO = "The person asks of these notes:";
