// Asking a model something small beside a chat: a title, a label, a summary. One answer of text, bounded in time and length; a passing
// failure is tried again.
import type { Clock } from "#base/clock.ts";
import { type LanguageModels, ModelError } from "#src/llm/model.ts";
import { pause } from "./insist.ts";
import { untilAborted } from "./watch.ts";

const TIME_MS = 30_000;
const TRIES = 3;
const PAUSE_MS = 1_000;
/** Characters after which an answer is long enough. */
const LONGEST = 2_000;

export type SideModel = { readonly clock: Clock; readonly models: LanguageModels };

/** The answer. Throws `ModelError`, of kind `timeout` after 30 seconds, or the reason of `signal`. */
export const askSideModel = async (
  { clock, models }: SideModel,
  model_id: string,
  { system, text }: { readonly system: string; readonly text: string },
  stop: AbortSignal,
): Promise<string> => {
  const late = new AbortController();
  const timer = clock.after(TIME_MS, () => late.abort(new ModelError("timeout", "The model took too long.")));
  const signal = AbortSignal.any([late.signal, stop]);
  try {
    for (let attempt = 1; ; attempt++) {
      try {
        return await answerOf(models, model_id, { system, text }, attempt, signal);
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

const answerOf = async (
  models: LanguageModels,
  model_id: string,
  { system, text }: { readonly system: string; readonly text: string },
  attempt: number,
  signal: AbortSignal,
): Promise<string> => {
  const messages = [
    { role: "system", content: [{ type: "text", text: system }] },
    { role: "user", content: [{ type: "text", text }] },
  ] as const;
  const request = { model_id, messages, tools: [], reasoning_effort: "", attempt, signal };
  let answer = "";
  for await (const event of untilAborted(models.stream(request)[Symbol.asyncIterator](), signal)) {
    if (event.type === "text") answer += event.delta;
    if (event.type === "finish" || answer.length >= LONGEST) break;
  }
  return answer;
};
