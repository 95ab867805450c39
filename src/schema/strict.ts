// Strict objects for security settings: a misspelled member must not silently widen access (rule HT-30).
import { type ObjectOptions, type TObject, type TProperties, Type as t } from "@sinclair/typebox";

/**
 * Returns an object schema that rejects unknown members and names them in the error (src/api/http/body/body-shape.ts). Sets a marker of its
 * own, because Elysia adds `additionalProperties: false` to all schemas, also to those whose unknown members it drops.
 */
export const strictObject = <P extends TProperties>(properties: P, options?: ObjectOptions): TObject<P> =>
  t.Object(properties, { ...options, additionalProperties: false, "x-strict": true });

export const isStrict = (schema: object): boolean => "x-strict" in schema;
