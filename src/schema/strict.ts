// Strict objects for security settings: a misspelled member must not silently widen access (rule HT-30).
import { type ObjectOptions, type TObject, type TProperties, Type as t } from "@sinclair/typebox";

/**
 * Returns an object whose unknown members are rejected by name (src/api/http/body/body-shape.ts). Uses a marker, because Elysia itself adds
 * `additionalProperties: false` to every schema whose unknown members it drops.
 */
export const strictObject = <P extends TProperties>(properties: P, options?: ObjectOptions): TObject<P> =>
  t.Object(properties, { ...options, additionalProperties: false, "x-strict": true });

export const isStrict = (schema: object): boolean => "x-strict" in schema;
