// Objects of settings that decide about safety: a misspelt member must not quietly make them wider (rule HT-30).
import { type TObject, type TProperties, Type as t } from "@sinclair/typebox";

/**
 * An object whose unknown members are refused by name (src/api/http/body/body-shape.ts). Marked, because Elysia itself writes `additionalProperties:
 * false` into every schema whose unknown members it drops.
 */
export const strictObject = <P extends TProperties>(properties: P): TObject<P> =>
  t.Object(properties, { additionalProperties: false, "x-strict": true });

export const isStrict = (schema: object): boolean => "x-strict" in schema;
