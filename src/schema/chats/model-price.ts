// Wire shapes of model prices in micros (millionths of a US dollar) per million tokens of each kind.
import { type Static, Type as t } from "@sinclair/typebox";
import { oneOf } from "../one-of.ts";
import { named, namedObject } from "../shape-names.ts";
import { strictObject } from "../strict.ts";

/** The highest price that can be entered: 1,000,000 dollars per million tokens. */
export const MAX_PRICE = 1_000_000_000_000;

const price = (description: string) => t.Integer({ minimum: 0, maximum: MAX_PRICE, description });
const prices = {
  input: price("Prompt tokens that neither came from nor went into a cache; micros per million tokens."),
  output: price("Tokens of the answer, those of its reasoning included."),
  cache_read: t.Optional(price("Prompt tokens that came from a cache; absent: as `input`.")),
  cache_write: t.Optional(price("Prompt tokens that went into a cache; absent: as `input`.")),
};

/** The prices of a model as an administrator enters them. */
export const ModelCost = named("ModelCost", strictObject(prices));
export type ModelCost = Static<typeof ModelCost>;

/** The effective prices. */
export const ModelPrice = namedObject("ModelPrice", {
  ...prices,
  source: oneOf(["model", "list"], "model: entered with it. list: the provider's public list price."),
  as_of: t.Optional(t.String({ description: "The date of the list." })),
});
export type ModelPrice = Static<typeof ModelPrice>;
