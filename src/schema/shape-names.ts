// Names of wire shapes in the OpenAPI document, and therefore in generated clients.
import { type ObjectOptions, type TObject, type TProperties, type TSchema, Type as t } from "@sinclair/typebox";

/** The schema keyword with the name. */
export const NAME = "x-name";

const registered = new Map<string, TSchema>();

/**
 * Gives a shape its unique name. It becomes a component of the OpenAPI document that all uses reference. A copy with its own description or
 * optionality (`t.Optional`, `{ ...shape, description }`) keeps the name; one with other properties must not.
 */
export const named = <T extends TSchema>(name: string, schema: T): T => {
  if (registered.has(name)) throw new Error(`two shapes are named ${name}`);
  const own = { ...schema, [NAME]: name };
  registered.set(name, own);
  return own;
};

/** Returns a named object schema with these members, and options for the whole object. */
export const namedObject = <P extends TProperties>(name: string, members: P, options?: ObjectOptions): TObject<P> =>
  named(name, t.Object(members, options));

/** All named shapes by name, as they were defined. */
export const namedShapes: ReadonlyMap<string, TSchema> = registered;
