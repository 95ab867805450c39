// Wire shapes of model prices in micros (millionths of a US dollar) per million tokens of each kind.
import { type Static, Type as t } from "@sinclair/typebox";
import { oneOf } from "../one-of.ts";
import { named, namedObject } from "../shape-names.ts";
import { strictObject } from "../strict.ts";

/** The highest price that can be entered: 1,000,000 dollars per million tokens. */
export const MAX_PRICE = 1_000_000_000_000;

const price = (description: string) => t.Integer({ minimum: 0, maximum: MAX_PRICE, description });
const prices = {
  input: price(
    "The price of prompt tokens that were neither read from nor written to a cache, in millionths of a US dollar per million tokens.",
  ),
  output: price(
    "The price of output tokens, including reasoning tokens, in millionths of a US dollar per million tokens.",
  ),
  cache_read: t.Optional(price("The price of prompt tokens read from a cache; default: the price of `input`.")),
  cache_write: t.Optional(price("The price of prompt tokens written to a cache; default: the price of `input`.")),
};

/** The prices of a model as an administrator enters them. */
export const ModelCost = named("ModelCost", strictObject(prices));
export type ModelCost = Static<typeof ModelCost>;

/** The effective prices. */
export const ModelPrice = namedObject("ModelPrice", {
  ...prices,
  source: oneOf(
    ["model", "list"],
    "Where the price comes from. `model`: the model's configuration. `list`: the provider's public price list.",
  ),
  as_of: t.Optional(t.String({ description: "The date of the price list." })),
  long_context: t.Optional(
    t.Boolean({
      description:
        "Whether a prompt of more than 200,000 tokens costs twice as much, and its output one and a half times. Only for prices of the list.",
    }),
  ),
});
export type ModelPrice = Static<typeof ModelPrice>;
