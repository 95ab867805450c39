// Asking a model something beside a chat's own answers: a title, a label, a summary of what came before. One answer of text, bounded in
// time and length; a passing failure is tried again.
import type { Clock } from "#base/clock.ts";
import { type LanguageModels, ModelError, type ModelUsage } from "#src/llm/model.ts";
import { pause } from "./insist.ts";
import { untilAborted } from "./watch.ts";

const TRIES = 3;
const PAUSE_MS = 1_000;

export type SideModel = { readonly clock: Clock; readonly models: LanguageModels };
export type SideQuestion = { readonly system: string; readonly text: string };
export type SideAnswer = { readonly text: string; readonly usage: ModelUsage | null };
/** How long all of it may take, and the characters after which an answer is long enough. */
export type SideLimits = { readonly time_ms: number; readonly longest: number };

const SMALL: SideLimits = { time_ms: 30_000, longest: 2_000 };

/** The answer. Throws `ModelError`, of kind `timeout` when time is up, or the reason of `stop`. */
export const askModel = async (
  { clock, models }: SideModel,
  model_id: string,
  question: SideQuestion,
  stop: AbortSignal,
  limits: SideLimits,
): Promise<SideAnswer> => {
  const late = new AbortController();
  const timer = clock.after(limits.time_ms, () => late.abort(new ModelError("timeout", "The model took too long.")));
  const signal = AbortSignal.any([late.signal, stop]);
  try {
    for (let attempt = 1; ; attempt++) {
      try {
        return await answerOf(models, model_id, question, attempt, signal, limits.longest);
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof ModelError) || !error.retryable || attempt >= TRIES) throw error;
        await pause(clock, PAUSE_MS * attempt, signal);
        signal.throwIfAborted();
      }
    }
  } finally {
    timer.cancel();
  }
};

/** A small question: 30 seconds, 2,000 characters. */
export const askSideModel = async (
  parts: SideModel,
  model_id: string,
  question: SideQuestion,
  stop: AbortSignal,
): Promise<string> => (await askModel(parts, model_id, question, stop, SMALL)).text;

const answerOf = async (
  models: LanguageModels,
  model_id: string,
  { system, text }: SideQuestion,
  attempt: number,
  signal: AbortSignal,
  longest: number,
): Promise<SideAnswer> => {
  const messages = [
    { role: "system", content: [{ type: "text", text: system }] },
    { role: "user", content: [{ type: "text", text }] },
  ] as const;
  const request = { model_id, messages, tools: [], reasoning_effort: "", attempt, signal };
  let answer = "";
  let usage: ModelUsage | null = null;
  for await (const event of untilAborted(models.stream(request)[Symbol.asyncIterator](), signal)) {
    if (event.type === "text") answer += event.delta;
    if (event.type === "usage") usage = event.usage;
    if (event.type === "finish" || answer.length >= longest) break;
  }
  return { text: answer, usage };
};
