// Sends a test prompt to a model, so that the person who configures it sees immediately whether it responds. The call is charged to the
// user like any other and belongs to no chat.
import { conflict, notFound } from "#base/errors.ts";
import type { TriedModel } from "#schema/chats/model-config.ts";
import { toChatError } from "#src/llm/failure.ts";
import { type LanguageModels, ModelError, type ModelInfo } from "#src/llm/model.ts";
import type { DomainContext } from "../context.ts";

const TIMEOUT_MS = 60_000;
const MAX_ANSWER_CHARS = 400;
const NO_CHAT = 0;

/**
 * Returns the answer and its latency, or the reason for the failure. Rejects with 404 for an unknown model and with 409 for a disabled one.
 */
export const tryModel = async (
  { clock, models, modelSettings }: Pick<DomainContext, "clock" | "models" | "modelSettings">,
  model_id: string,
  user_id: string,
  stop: AbortSignal,
): Promise<TriedModel> => {
  const catalog = await modelSettings.list();
  if (!catalog.models.some(({ id }) => id === model_id)) throw notFound();
  const model = models.resolve(model_id);
  if (!model) throw conflict("The model or its provider is disabled or has no key.");
  return sendTestPrompt({ clock }, models, model, user_id, stop);
};

/** Sends a test prompt and returns the result. */
export const sendTestPrompt = async (
  { clock }: Pick<DomainContext, "clock">,
  models: LanguageModels,
  model: ModelInfo,
  user_id: string,
  stop: AbortSignal,
): Promise<TriedModel> => {
  const timeout = new AbortController();
  const timer = clock.after(TIMEOUT_MS, () => timeout.abort(new ModelError("timeout", "The model took too long.")));
  const signal = AbortSignal.any([timeout.signal, stop]);
  const started = clock.monotonic();
  let first_ms: number | undefined;
  let answer = "";
  let output_tokens = 0;
  try {
    const events = models.stream({
      payer: { user_id, chat_key: NO_CHAT, kind: "quickgen" },
      model_id: model.id,
      tools: [],
      reasoning_effort: "",
      messages: [{ role: "user", content: [{ type: "text", text: "Say hello in one short sentence." }] }],
      attempt: 1,
      signal,
    });
    for await (const event of events) {
      signal.throwIfAborted();
      if (event.type === "text" || event.type === "reasoning") first_ms ??= clock.monotonic() - started;
      if (event.type === "text") answer += event.delta;
      if (event.type === "text_was_reasoning") answer = "";
      if (event.type === "usage") output_tokens = event.usage.output_tokens ?? 0;
      if (event.type === "finish" || answer.length >= MAX_ANSWER_CHARS) break;
    }
    const total_ms = Math.round(clock.monotonic() - started);
    return {
      works: true,
      answer: answer.slice(0, MAX_ANSWER_CHARS),
      first_ms: Math.round(first_ms ?? total_ms),
      total_ms,
      output_tokens,
    };
  } catch (error) {
    stop.throwIfAborted();
    const failure = signal.aborted ? signal.reason : error;
    const { kind, message, detail } = toChatError(failure, model, clock.now());
    // The network's message is omitted when ours already gives the reason, or when the key was rejected, because it may contain the key.
    const isExplained =
      detail === undefined || kind === "auth" || (failure instanceof ModelError && failure.reason !== undefined);
    return {
      works: false,
      answer: "",
      problem: isExplained ? message : `${message} ${detail}`,
      first_ms: 0,
      total_ms: Math.round(clock.monotonic() - started),
      output_tokens: 0,
    };
  } finally {
    timer.cancel();
  }
};
