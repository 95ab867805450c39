// Reads the token counts of a model call. Pure; used where the whole prompt counts, cached or not.
import type { LanguageModelV4Usage } from "@ai-sdk/provider";
import type { ModelUsage } from "./model.ts";

type Count = number | null | undefined;
/** Token counts of OpenAI-compatible servers; some report cached tokens in their own members. */
type ServerUsage = {
  readonly prompt_tokens?: Count;
  readonly completion_tokens?: Count;
  readonly prompt_tokens_details?: { readonly cached_tokens?: Count } | null;
  readonly completion_tokens_details?: { readonly reasoning_tokens?: Count } | null;
};

export const convertUsage = (usage: ServerUsage | null | undefined): LanguageModelV4Usage => {
  const input = usage?.prompt_tokens ?? undefined;
  const output = usage?.completion_tokens ?? undefined;
  const { prompt_cache_hit_tokens: cacheHits } = (usage ?? {}) as { prompt_cache_hit_tokens?: Count };
  const cached = usage?.prompt_tokens_details?.cached_tokens ?? cacheHits ?? undefined;
  const reasoning = usage?.completion_tokens_details?.reasoning_tokens ?? undefined;
  const subtractPart = (all: number | undefined, part = 0) => (all === undefined ? undefined : Math.max(0, all - part));
  return {
    inputTokens: { total: input, noCache: subtractPart(input, cached), cacheRead: cached, cacheWrite: undefined },
    outputTokens: { total: output, text: subtractPart(output, reasoning), reasoning },
  };
};

/**
 * Returns the tokens of the whole prompt, from the total if there is one: messages of older versions included cached tokens in
 * `input_tokens`.
 */
export const countPromptTokens = ({
  total_tokens,
  input_tokens = 0,
  output_tokens = 0,
  cache_read_tokens = 0,
  cache_creation_tokens = 0,
}: ModelUsage): number =>
  total_tokens === undefined
    ? input_tokens + cache_read_tokens + cache_creation_tokens
    : Math.max(0, total_tokens - output_tokens);
