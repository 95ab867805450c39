// Computes the cost of a model call. Pure.
import type { ModelCost, ModelPrice } from "#schema/chats/model-price.ts";
import type { ModelUsage } from "./model.ts";

/** Prices are per this number of tokens. */
const TOKENS_PER_PRICE = 1_000_000n;
/** The longest prompt, with cached tokens, at the ordinary price of a model with `long_context`. */
const MAX_ORDINARY_PROMPT_TOKENS = 200_000;

/** A price, and whether longer prompts cost more. */
type CallPrice = ModelCost & Pick<ModelPrice, "long_context">;

/**
 * Returns the cost of a call in micros, rounded half up once for the whole call; null without a price. `input_tokens` excludes cached
 * tokens, and `output_tokens` includes reasoning. Exact: the sum of products does not fit into a double.
 */
export const computeCost = (usage: ModelUsage, price: CallPrice | undefined): number | null => {
  if (!price) return null;
  const { input, output, cache_read = input, cache_write = input } = price;
  const { input_tokens = 0, output_tokens = 0, cache_read_tokens = 0, cache_creation_tokens = 0 } = usage;
  const hour_tokens = Math.min(usage.cache_creation_1h_tokens ?? 0, cache_creation_tokens);
  const promptCost =
    computeTokenCost(input_tokens, input) +
    computeTokenCost(cache_read_tokens, cache_read) +
    computeTokenCost(cache_creation_tokens - hour_tokens, cache_write) +
    computeTokenCost(hour_tokens, Math.max(cache_write, 2 * input));
  const answerCost = computeTokenCost(output_tokens, output);
  const isLong =
    price.long_context && input_tokens + cache_read_tokens + cache_creation_tokens > MAX_ORDINARY_PROMPT_TOKENS;
  // Long prompts cost twice as much, and their output one and a half times.
  const doubledCost = isLong ? 4n * promptCost + 3n * answerCost : 2n * (promptCost + answerCost);
  return Number((doubledCost + TOKENS_PER_PRICE) / (2n * TOKENS_PER_PRICE));
};

const computeTokenCost = (tokens: number, price: number): bigint => BigInt(Math.trunc(tokens)) * BigInt(price);
