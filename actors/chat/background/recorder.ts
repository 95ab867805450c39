// Records the model calls of turns for debugging (facts/chats 4.18), only if the deployment or the chat's owner enabled it. Runs outside of
// the mailbox and never delays a turn: records that cannot be written are dropped (rules RM-1 to RM-7).

import type { Clock } from "#base/clock.ts";
import { uuid } from "#base/ids.ts";
import { log } from "#base/log.ts";
import { type ChatRunRow, findHistoryTips, insertRun, insertStep, updateRun } from "#db/chats/runs.ts";
import { type CallSettings, readCallSettings } from "#db/chats/settings.ts";
import type { Statement } from "#db/engine/sql.ts";
import type { Store } from "#db/engine/store.ts";
import type { MessagePart } from "#schema/chats/chat-part.ts";
import { ModelError, type ModelRequest } from "#src/llm/model.ts";
import type { StartedAttempt } from "../messages.ts";
import type { Collector } from "../turn/collector.ts";
import { redactSecrets, toRecordable } from "./record-text.ts";

/** Maximum recorded steps of a run. A longer turn continues unrecorded. */
export const MAX_RECORDED_STEPS = 200;
/** Maximum waiting commits. Further records are dropped. */
const MAX_WAITING_COMMITS = 64;

type Deps = {
  readonly store: Store;
  readonly clock: Clock;
  /** Whether the deployment records every chat. */
  readonly isForced: boolean;
};

export class Recorder {
  readonly #deps: Deps;
  #waiting = 0;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Returns a recording of one turn or side task. It is created with the first model call. */
  run(kind: ChatRunRow["kind"]): Recording {
    return new Recording(this.#deps, kind, (batch, part) => this.#write(batch, part));
  }

  #write(batch: readonly Statement[], part: number): void {
    if (this.#waiting >= MAX_WAITING_COMMITS) return;
    this.#waiting += 1;
    this.#deps.store
      .commit(batch, { of: part })
      .catch((error) => log("chats").debug("cannot record a model call: {error}", { error }))
      .finally(() => {
        this.#waiting -= 1;
      });
  }
}

/** The chat and model of a recorded call. `settings` is set if the call has already read them. */
export type RecordedCall = Pick<StartedAttempt, "chat_key" | "part" | "model_id" | "provider"> & {
  readonly chat: Pick<StartedAttempt["chat"], "owner_id">;
  readonly settings?: CallSettings;
};

/** The outcome of a model call. */
export type CallEnd = { readonly collector: Collector; readonly failure: unknown; readonly isStopped: boolean };
export type RecordEnd = (end: CallEnd) => void;

export class Recording {
  readonly #deps: Deps;
  readonly #kind: ChatRunRow["kind"];
  readonly #write: (batch: readonly Statement[], part: number) => void;
  #part = 0;
  /** Undefined before the first call; null when recording is off. */
  #run: ChatRunRow["key"] | null | undefined;
  #steps = 0;
  #lastStatus: ChatRunRow["status"] = "completed";

  constructor(deps: Deps, kind: ChatRunRow["kind"], write: (batch: readonly Statement[], part: number) => void) {
    this.#deps = deps;
    this.#kind = kind;
    this.#write = write;
  }

  /**
   * Records the beginning of a model call. Returns a function that records its end, or undefined when recording is off. Waits for the
   * database only at the first call. Never rejects.
   */
  async call(started: RecordedCall, request: ModelRequest): Promise<RecordEnd | undefined> {
    if (this.#run === undefined) this.#run = await this.#begin(started).catch(() => null);
    const run = this.#run;
    if (run === null || this.#steps >= MAX_RECORDED_STEPS) return undefined;
    const number = ++this.#steps;
    const started_at = this.#deps.clock.now();
    const { tools, messages, signal: _, payer: _payer, ...requested } = request;
    return ({ collector, failure, isStopped }) => {
      const finished_at = this.#deps.clock.now();
      const status = isStopped ? "interrupted" : failure === undefined ? "completed" : "error";
      this.#lastStatus = status;
      const content = collector.content(finished_at);
      this.#write(
        [
          insertStep({
            run,
            number,
            operation: this.#kind === "chat_turn" ? "stream" : "generate",
            status,
            started_at,
            finished_at,
            request: toRecordable({
              ...requested,
              tools: tools.map(({ name, description }) => ({ name, description })),
              messages: messages.map(({ role, content }) => ({ role, content: content.map(stripInternalData) })),
            }),
            response: toRecordable({ content: content.map(stripInternalData), finish: collector.finish ?? null }),
            usage: collector.usage as Record<string, number> | null,
            error: failure === undefined ? null : toRecordable(toError(failure)),
          }),
          updateRun(run, { updated_at: finished_at }),
        ],
        this.#part,
      );
    };
  }

  /** Records the end of the turn. */
  end(isStopped: boolean): void {
    if (!this.#run) return;
    const now = this.#deps.clock.now();
    const status = isStopped ? "interrupted" : this.#lastStatus;
    const summary = `${this.#steps} model ${this.#steps === 1 ? "call" : "calls"}`;
    this.#write([updateRun(this.#run, { status, summary, updated_at: now, finished_at: now })], this.#part);
  }

  async #begin(started: RecordedCall): Promise<number | null> {
    if (!(await this.#isWanted(started))) return null;
    this.#part = started.part;
    const { store, clock } = this.#deps;
    const key = await store.reserve("chat_runs", 1);
    const [tips] = await store.scan(findHistoryTips({ chat: started.chat_key }));
    const now = clock.now();
    this.#write(
      [
        insertRun({
          key,
          id: uuid(),
          chat: started.chat_key,
          kind: this.#kind,
          status: "in_progress",
          provider: started.provider,
          model: started.model_id,
          started_at: now,
          updated_at: now,
          trigger_message_id: tips?.user ?? null,
          history_tip_message_id: tips?.last ?? null,
        }),
      ],
      this.#part,
    );
    return key;
  }

  async #isWanted({ chat, settings }: RecordedCall): Promise<boolean> {
    const { store, isForced } = this.#deps;
    if (isForced) return true;
    const { allow_debug_logging, debug_logging } = settings ?? (await readCallSettings(store, chat.owner_id));
    return allow_debug_logging && debug_logging;
  }
}

/** Removes internal provider metadata, which is long, and text that hooks addressed to the model only (rule HK-10). */
const stripInternalData = (part: MessagePart): MessagePart => {
  const { provider_metadata: _, ...shown } = part;
  return part.type === "hook-context" ? { type: "hook-context" } : shown;
};

const toError = (failure: unknown) => {
  if (!(failure instanceof ModelError)) return { kind: "generic", message: "The model adapter failed." };
  const { kind, message, retryable, provider, status_code } = failure;
  return { kind, message: redactSecrets(message), retryable, provider, status_code: status_code ?? null };
};
