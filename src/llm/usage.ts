// Reading the counters of a model call. Pure; used where a whole prompt counts, cached or not.
import type { ModelUsage } from "./model.ts";

/**
 * Tokens of the whole prompt. From the total where there is one: messages of older versions have counted cached tokens among
 * `input_tokens`, too.
 */
export const promptTokens = ({
  total_tokens,
  input_tokens = 0,
  output_tokens = 0,
  cache_read_tokens = 0,
  cache_creation_tokens = 0,
}: ModelUsage): number =>
  total_tokens === undefined
    ? input_tokens + cache_read_tokens + cache_creation_tokens
    : Math.max(0, total_tokens - output_tokens);
