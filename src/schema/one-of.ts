// A string from a fixed set of values.
import { type TSchema, Type as t } from "@sinclair/typebox";

/** Returns a schema whose static type is the union of the values. */
export const oneOf = <const V extends readonly string[]>(values: V, description?: string): OneOf<V> =>
  t.Unsafe<V[number]>(
    t.Union(
      values.map((value) => t.Literal(value)),
      description ? { description } : {},
    ),
  ) as OneOf<V>;

export type OneOf<V extends readonly string[]> = TSchema & { static: V[number] };
