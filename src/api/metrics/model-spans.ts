// Traces each language model call with a span that follows OpenTelemetry's conventions for generative AI. Spans never contain prompts or
// answers.
import { beginSpan, getErrorType, runInSpan, type Span, type SpanAttributes } from "#base/spans.ts";
import type { LanguageModels, ModelEvent, ModelRequest, ModelUsage } from "#src/llm/model.ts";
import { countPromptTokens } from "#src/llm/usage.ts";

/** Provider kinds whose name in the conventions differs. */
const PROVIDER_NAMES: Readonly<Record<string, string>> = { google: "gcp.gemini", azure: "azure.ai.openai" };

/** Returns a provider kind's name in the conventions. */
export const toConventionalProvider = (kind: string): string => PROVIDER_NAMES[kind] ?? kind;

/** Starts the span of a model call. */
export const beginModelSpan = (operation: "chat" | "embeddings", model: string, provider: string): Span | undefined =>
  beginSpan({
    name: `${operation} ${model}`,
    kind: "client",
    attributes: {
      "gen_ai.operation.name": operation,
      "gen_ai.provider.name": toConventionalProvider(provider),
      "gen_ai.request.model": model,
    },
  });

/** Returns a call's token counts, as far as the provider reports them. */
export const toUsageAttributes = (usage: ModelUsage): SpanAttributes => ({
  "gen_ai.usage.input_tokens": countPromptTokens(usage),
  "gen_ai.usage.output_tokens": usage.output_tokens,
  "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
  "gen_ai.usage.cache_creation.input_tokens": usage.cache_creation_tokens,
});

/** Wraps the models so that each call has a span. */
export const traceModels = (models: LanguageModels): LanguageModels => ({
  resolve: (id) => models.resolve(id),
  resolveSideModel: (id) => models.resolveSideModel?.(id),
  findModelPrice: (id) => models.findModelPrice?.(id),
  async *stream(request: ModelRequest): AsyncIterable<ModelEvent> {
    const info = models.resolve(request.model_id);
    const span = beginModelSpan("chat", info?.model ?? request.model_id, info?.provider ?? "unknown");
    span?.set({ "slipway.call.kind": request.payer.kind, "slipway.call.attempt": request.attempt });
    try {
      const events = models.stream(request)[Symbol.asyncIterator]();
      for (;;) {
        // Keeps work during the call inside its span: a generator runs in the context of its reader.
        const { done, value } = await runInSpan(span, () => events.next());
        if (done) return;
        if (span) noteEvent(span, value);
        yield value;
      }
    } catch (error) {
      span?.fail(request.signal.aborted ? "stopped" : getErrorType(error));
      throw error;
    } finally {
      span?.end();
    }
  },
});

const noteEvent = (span: Span, event: ModelEvent): void => {
  if (event.type === "finish") span.set({ "gen_ai.response.finish_reasons": [event.reason] });
  if (event.type !== "usage") return;
  span.set(toUsageAttributes(event.usage));
};
