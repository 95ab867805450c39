// A span for each call of a language model, in the words of OpenTelemetry's conventions for generative AI. Nothing of what is said is in it.
import { beginSpan, errorType, type Span, type SpanAttributes, withinSpan } from "#base/spans.ts";
import type { LanguageModels, ModelEvent, ModelRequest, ModelUsage } from "#src/llm/model.ts";
import { promptTokens } from "#src/llm/usage.ts";

/** Kinds of providers by their names in the conventions; others are called as we call them. */
const PROVIDER_NAMES: Readonly<Record<string, string>> = { google: "gcp.gemini", azure: "azure.ai.openai" };

/** What the conventions call a kind of provider. */
export const conventionalProvider = (kind: string): string => PROVIDER_NAMES[kind] ?? kind;

/** Begins the span of a model call. */
export const beginModelSpan = (operation: "chat" | "embeddings", model: string, provider: string): Span | undefined =>
  beginSpan({
    name: `${operation} ${model}`,
    kind: "client",
    attributes: {
      "gen_ai.operation.name": operation,
      "gen_ai.provider.name": conventionalProvider(provider),
      "gen_ai.request.model": model,
    },
  });

/** Tokens of a call, as far as the provider reports them. */
export const usageAttributes = (usage: ModelUsage): SpanAttributes => ({
  "gen_ai.usage.input_tokens": promptTokens(usage),
  "gen_ai.usage.output_tokens": usage.output_tokens,
  "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
  "gen_ai.usage.cache_creation.input_tokens": usage.cache_creation_tokens,
});

/** The same models, with a span for each call. */
export const tracedModels = (models: LanguageModels): LanguageModels => ({
  resolve: (id) => models.resolve(id),
  side: (id) => models.side?.(id),
  price: (id) => models.price?.(id),
  async *stream(request: ModelRequest): AsyncIterable<ModelEvent> {
    const info = models.resolve(request.model_id);
    const span = beginModelSpan("chat", info?.model ?? request.model_id, info?.provider ?? "unknown");
    span?.set({ "slipway.call.kind": request.payer.kind, "slipway.call.attempt": request.attempt });
    try {
      const events = models.stream(request)[Symbol.asyncIterator]();
      for (;;) {
        // What the call does on its way belongs to it: a generator runs in the context of its reader.
        const { done, value } = await withinSpan(span, () => events.next());
        if (done) return;
        if (span) noteEvent(span, value);
        yield value;
      }
    } catch (error) {
      span?.fail(request.signal.aborted ? "stopped" : errorType(error));
      throw error;
    } finally {
      span?.end();
    }
  },
});

const noteEvent = (span: Span, event: ModelEvent): void => {
  if (event.type === "finish") span.set({ "gen_ai.response.finish_reasons": [event.reason] });
  if (event.type !== "usage") return;
  span.set(usageAttributes(event.usage));
};
