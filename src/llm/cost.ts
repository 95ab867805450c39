// Computes the cost of a model call. Pure.
import type { ModelCost } from "#schema/chats/model-price.ts";
import type { ModelUsage } from "./model.ts";

/** Prices are per this number of tokens. */
const TOKENS = 1_000_000n;

/**
 * Returns the cost of a call in micros, rounded half up once for the whole call; null without a price. `input_tokens` excludes cached
 * tokens, and `output_tokens` includes reasoning. Exact: the sum of products does not fit into a double.
 */
export const computeCost = (usage: ModelUsage, price: ModelCost | undefined): number | null => {
  if (!price) return null;
  const { input, output, cache_read = input, cache_write = input } = price;
  const { input_tokens = 0, output_tokens = 0, cache_read_tokens = 0, cache_creation_tokens = 0 } = usage;
  const sum =
    computeTokenCost(input_tokens, input) +
    computeTokenCost(output_tokens, output) +
    computeTokenCost(cache_read_tokens, cache_read) +
    computeTokenCost(cache_creation_tokens, cache_write);
  return Number((sum + TOKENS / 2n) / TOKENS);
};

const computeTokenCost = (tokens: number, price: number): bigint => BigInt(Math.trunc(tokens)) * BigInt(price);
