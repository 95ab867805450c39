// Asks a model small questions that are not part of a chat's history: for a title, a label, a summary. Answers are texts, limited in time
// and length. Retries transient failures.
import type { Clock } from "#base/clock.ts";
import { pause } from "#base/retry.ts";
import type { ChatRunRow } from "#db/chats/runs.ts";
import {
  type LanguageModels,
  ModelError,
  type ModelRequest,
  type ModelUsage,
  type RequestMemory,
} from "#src/llm/model.ts";
import { Collector } from "../turn/collector.ts";
import { untilAborted } from "../turn/watch.ts";
import type { RecordedCall, Recorder, Recording } from "./recorder.ts";

const MAX_TRIES = 3;
const RETRY_DELAY_MS = 1_000;

export type SideModelDeps = {
  readonly clock: Clock;
  readonly models: LanguageModels;
  /** Absent when recording is off. */
  readonly recorder?: Recorder | undefined;
  /** Returns the memory that the caller has already reserved. */
  readonly memory?: () => RequestMemory | undefined;
};
/** The purpose of a question, as it is recorded. */
export type SidePurpose = RecordedCall & { readonly kind: ChatRunRow["kind"] };
export type SideQuestion = { readonly system: string; readonly text: string };
export type SideAnswer = { readonly text: string; readonly usage: ModelUsage | null };
/** The total time, and the number of characters after which the answer is cut off. */
export type SideLimits = { readonly time_ms: number; readonly longest: number };

const SMALL_LIMITS: SideLimits = { time_ms: 30_000, longest: 2_000 };

/** Returns the answer. Throws `ModelError`, of kind `timeout` when time is up, or the reason of `stop`. */
export const askModel = async (
  { clock, models, recorder, memory }: SideModelDeps,
  purpose: SidePurpose,
  question: SideQuestion,
  stop: AbortSignal,
  limits: SideLimits,
): Promise<SideAnswer> => {
  const timeout = new AbortController();
  const timer = clock.after(limits.time_ms, () => timeout.abort(new ModelError("timeout", "The model took too long.")));
  const signal = AbortSignal.any([timeout.signal, stop]);
  const record = recorder?.run(purpose.kind);
  try {
    for (let attempt = 1; ; attempt++) {
      try {
        return await requestAnswer(models, purpose, question, {
          attempt,
          signal,
          clock,
          record,
          memory: memory?.(),
          longest: limits.longest,
        });
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof ModelError) || !error.retryable || attempt >= MAX_TRIES) throw error;
        await pause(clock, RETRY_DELAY_MS * attempt, signal);
        signal.throwIfAborted();
      }
    }
  } finally {
    timer.cancel();
    record?.end(stop.aborted);
  }
};

/** Asks a small question, limited to 30 seconds and 2,000 characters. */
export const askSideModel = async (
  deps: SideModelDeps,
  purpose: SidePurpose,
  question: SideQuestion,
  stop: AbortSignal,
): Promise<string> => (await askModel(deps, purpose, question, stop, SMALL_LIMITS)).text;

type AttemptContext = Pick<ModelRequest, "attempt" | "memory" | "signal"> & {
  readonly clock: Clock;
  readonly record: Recording | undefined;
  readonly longest: number;
};

const requestAnswer = async (
  models: LanguageModels,
  purpose: SidePurpose,
  { system, text }: SideQuestion,
  { attempt, signal, clock, record, memory, longest }: AttemptContext,
): Promise<SideAnswer> => {
  const messages = [
    { role: "system", content: [{ type: "text", text: system }] },
    { role: "user", content: [{ type: "text", text }] },
  ] as const;
  const payer = { user_id: purpose.chat.owner_id, chat_key: purpose.chat_key, kind: purpose.kind };
  const request = {
    payer,
    model_id: purpose.model_id,
    messages,
    tools: [],
    reasoning_effort: "",
    memory,
    attempt,
    signal,
  };
  const collector = new Collector();
  const recordEnd = await record?.call(purpose, request);
  let failure: unknown;
  let answer = "";
  try {
    for await (const event of untilAborted(models.stream(request)[Symbol.asyncIterator](), signal)) {
      collector.add(event, clock.now());
      if (event.type === "text") answer += event.delta;
      if (event.type === "text_was_reasoning") answer = "";
      if (event.type === "finish" || answer.length >= longest) break;
    }
    return { text: answer, usage: collector.usage };
  } catch (error) {
    failure = error;
    throw error;
  } finally {
    recordEnd?.({ collector, failure, isStopped: signal.aborted });
  }
};
