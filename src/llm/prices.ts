// Public list prices of common models, in US dollars per million tokens, by the provider's kind and the model's name, from the providers'
// own price lists. Models that are missing here have no price until an administrator enters one. Models whose price depends on the length
// of the prompt in another way than described at LONG_CONTEXT are left out. When you change a price, change the date.
import type { ModelCost, ModelPrice } from "#schema/chats/model-price.ts";
import type { ProviderKind } from "#schema/chats/model-provider.ts";

/** The date of the last comparison with the price lists. */
export const PRICES_AS_OF = "2025-12-01";

/** Input, output, cache read, cache write. If a cache price is missing, cached tokens cost as much as input. */
type Dollars = readonly [input: number, output: number, read: number, write?: number];
type ListPrice = readonly [name: RegExp, dollars: Dollars];

/** Matches a model's name with the dates and aliases under which it is served. */
const toNamePattern = (name: string): RegExp => new RegExp(`^${name}(-latest|-\\d{8}|-\\d{4}-\\d{2}-\\d{2})?$`);

const PRICE_LISTS: Partial<Record<ProviderKind, readonly ListPrice[]>> = {
  // https://docs.claude.com/en/docs/about-claude/pricing: cache writes have a lifetime of five minutes (computeCost handles the others).
  anthropic: [
    [toNamePattern("claude-opus-4-5"), [5, 25, 0.5, 6.25]],
    [toNamePattern("claude-opus-4(-0|-1)?"), [15, 75, 1.5, 18.75]],
    [toNamePattern("claude-sonnet-4(-0|-5)?"), [3, 15, 0.3, 3.75]],
    [toNamePattern("claude-3-[57]-sonnet"), [3, 15, 0.3, 3.75]],
    [toNamePattern("claude-haiku-4-5"), [1, 5, 0.1, 1.25]],
    [toNamePattern("claude-3-5-haiku"), [0.8, 4, 0.08, 1]],
  ],
  // https://platform.openai.com/docs/pricing: the standard tier.
  openai: [
    [toNamePattern("gpt-5(\\.1)?(-codex|-chat)?"), [1.25, 10, 0.125]],
    [toNamePattern("gpt-5-mini"), [0.25, 2, 0.025]],
    [toNamePattern("gpt-5-nano"), [0.05, 0.4, 0.005]],
    [toNamePattern("gpt-4\\.1"), [2, 8, 0.5]],
    [toNamePattern("gpt-4\\.1-mini"), [0.4, 1.6, 0.1]],
    [toNamePattern("gpt-4\\.1-nano"), [0.1, 0.4, 0.025]],
    [toNamePattern("gpt-4o-mini"), [0.15, 0.6, 0.075]],
    [toNamePattern("o3"), [2, 8, 0.5]],
    [toNamePattern("o4-mini"), [1.1, 4.4, 0.275]],
  ],
};

/** Anthropic's models with a context of a million tokens: prompts of more than 200,000 cost more. */
const LONG_CONTEXT = toNamePattern("claude-sonnet-4(-0|-5)?");

/** Kinds of providers whose models cost money; an OpenAI-compatible server may be self-hosted. */
export const PAID_KINDS: ReadonlySet<string> = new Set<ProviderKind>(["anthropic", "openai", "google"]);

/** Returns whether a model's calls cost money, as far as known. */
export const costsMoney = (provider: string, price: ModelCost | undefined): boolean =>
  price !== undefined || PAID_KINDS.has(provider);

const toMicros = (dollars: number): number => Math.round(dollars * 1_000_000);

/** Returns the list price of a model; undefined if it is not listed. */
export const listPrice = (provider: ProviderKind, model: string): ModelPrice | undefined => {
  const found = PRICE_LISTS[provider]?.find(([name]) => name.test(model))?.[1];
  if (!found) return undefined;
  const [input, output, read, write] = found;
  const prices: ModelCost = {
    input: toMicros(input),
    output: toMicros(output),
    cache_read: toMicros(read),
    ...(write === undefined ? {} : { cache_write: toMicros(write) }),
  };
  const listed: ModelPrice = { ...prices, source: "list", as_of: PRICES_AS_OF };
  if (provider === "anthropic" && LONG_CONTEXT.test(model)) listed.long_context = true;
  return listed;
};

/** Returns the current price of a model: the one an administrator has entered, otherwise the list price; undefined if unknown. */
export const findPrice = (
  provider: ProviderKind,
  model: string,
  entered: ModelCost | undefined,
): ModelPrice | undefined => (entered ? { ...entered, source: "model" } : listPrice(provider, model));
