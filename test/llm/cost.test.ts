// The cost of a model call, and each model's list price.
import { describe, expect, test } from "bun:test";
import { computeCost } from "#src/llm/cost.ts";
import type { ModelUsage } from "#src/llm/model.ts";
import { findPrice, listPrice, PRICES_AS_OF } from "#src/llm/prices.ts";

const SONNET = { input: 3_000_000, output: 15_000_000, cache_read: 300_000, cache_write: 3_750_000 };
const PLAIN = { input: 3_000_000, output: 15_000_000 };

describe("[SP-1] a call costs the sum of its tokens at the price of each kind, rounded once", () => {
  const LONG = { ...SONNET, long_context: true };
  const rows: [string, ModelUsage, (typeof PLAIN & { long_context?: boolean }) | undefined, number | null][] = [
    ["input and output", { input_tokens: 1_000, output_tokens: 100 }, SONNET, 4_500],
    [
      "reasoning tokens are part of the output",
      { output_tokens: 100, reasoning_tokens: 80, total_tokens: 100 },
      SONNET,
      1_500,
    ],
    ["cache read", { input_tokens: 10, cache_read_tokens: 1_000 }, SONNET, 330],
    ["cache write", { input_tokens: 10, cache_creation_tokens: 1_000 }, SONNET, 3_780],
    [
      "cache write for an hour",
      { cache_creation_tokens: 1_000_000, cache_creation_1h_tokens: 600_000 },
      SONNET,
      1_500_000 + 3_600_000,
    ],
    ["more tokens kept for an hour than written", { cache_creation_1h_tokens: 9 }, SONNET, 0],
    ["cache write for an hour without a price", { cache_creation_tokens: 10, cache_creation_1h_tokens: 10 }, PLAIN, 60],
    ["a prompt of 200,000", { input_tokens: 200_000, output_tokens: 5 }, LONG, 600_075],
    ["a long prompt", { input_tokens: 300_000, output_tokens: 5 }, LONG, 1_800_113],
    [
      "a long prompt in a cache",
      { cache_read_tokens: 200_000, cache_creation_tokens: 1, input_tokens: 1 },
      LONG,
      120_014,
    ],
    ["a long prompt of a model with one price", { input_tokens: 300_000 }, SONNET, 900_000],
    [
      "cached tokens without a separate price cost as much as input",
      { cache_read_tokens: 10, cache_creation_tokens: 5 },
      PLAIN,
      45,
    ],
    ["a half is rounded up", { input_tokens: 1 }, { input: 500_000, output: 0 }, 1],
    ["less than a half is rounded down", { input_tokens: 1 }, { input: 499_999, output: 0 }, 0],
    [
      "the sum is rounded, not its parts",
      { input_tokens: 1, output_tokens: 1 },
      { input: 250_000, output: 250_000 },
      1,
    ],
    ["free is not unpriced", { input_tokens: 9 }, { input: 0, output: 0 }, 0],
    ["unpriced is not free", { input_tokens: 9 }, undefined, null],
    ["exact beyond doubles", { input_tokens: 900_000_001 }, { input: 10_000_001, output: 0 }, 9_000_000_910],
  ];
  test.each(rows)("%s", (_, usage, price, cost) => expect(computeCost(usage, price)).toBe(cost));
});

describe("[SP-2] the list matches models by name and dated name, of their own provider only", () => {
  test.each([
    ["anthropic", "claude-sonnet-4-5-20250929", { ...SONNET, long_context: true }],
    ["anthropic", "claude-3-7-sonnet-latest", SONNET],
    [
      "anthropic",
      "claude-opus-4-5",
      { input: 5_000_000, output: 25_000_000, cache_read: 500_000, cache_write: 6_250_000 },
    ],
    [
      "anthropic",
      "claude-3-5-haiku-latest",
      { input: 800_000, output: 4_000_000, cache_read: 80_000, cache_write: 1_000_000 },
    ],
    ["openai", "gpt-5-2025-08-07", { input: 1_250_000, output: 10_000_000, cache_read: 125_000 }],
    ["openai", "gpt-4.1-mini", { input: 400_000, output: 1_600_000, cache_read: 100_000 }],
  ] as const)("%s %s", (provider, model, prices) =>
    expect(listPrice(provider, model)).toEqual({ ...prices, source: "list", as_of: PRICES_AS_OF }),
  );
  test.each([
    ["openai-compat", "gpt-5"],
    ["anthropic", "claude-sonnet-9"],
    ["anthropic", "my-claude-sonnet-4-5"],
    ["openai", "gpt-5-pro"],
    ["openai", "gpt-4x1"],
    ["demo", "demo"],
  ] as const)("%s %s has no list price", (provider, model) => expect(listPrice(provider, model)).toBeUndefined());
});

test("[SP-2] a price from an administrator replaces the list price completely", () => {
  expect(findPrice("anthropic", "claude-sonnet-4-5", PLAIN)).toEqual({ ...PLAIN, source: "model" });
  expect(findPrice("openai-compat", "mine", PLAIN)).toEqual({ ...PLAIN, source: "model" });
});
