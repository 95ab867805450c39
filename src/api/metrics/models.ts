// Counts language model calls and their usage; passes everything on unchanged.
import type { Metrics } from "#base/metrics.ts";
import { type LanguageModels, ModelError, type ModelEvent, type ModelRequest } from "#src/llm/model.ts";
import { countPromptTokens } from "#src/llm/usage.ts";

export const countModels = (models: LanguageModels, { models: counts }: Metrics): LanguageModels => ({
  resolve: (id) => models.resolve(id),
  resolveSideModel: (id) => models.resolveSideModel?.(id),
  findModelPrice: (id) => models.findModelPrice?.(id),
  async *stream(request: ModelRequest): AsyncIterable<ModelEvent> {
    counts.calls += 1;
    if (request.attempt > 1) counts.retries += 1;
    let tokens = { input: 0, output: 0 };
    try {
      for await (const event of models.stream(request)) {
        // A provider can report more than once; the last report is final.
        if (event.type === "usage")
          tokens = { input: countPromptTokens(event.usage), output: event.usage.output_tokens ?? 0 };
        yield event;
      }
    } catch (error) {
      const kind = error instanceof ModelError ? error.kind : request.signal.aborted ? "stopped" : "other";
      counts.failures.set(kind, (counts.failures.get(kind) ?? 0) + 1);
      throw error;
    } finally {
      counts.tokens_in += tokens.input;
      counts.tokens_out += tokens.output;
    }
  },
});
