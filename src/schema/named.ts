// Names of wire shapes: what a shape is called in the OpenAPI document and so in clients that are generated from it.
import { type ObjectOptions, type TObject, type TProperties, type TSchema, Type as t } from "@sinclair/typebox";

/** The member of a schema that holds its name. */
export const NAME = "x-name";

const taken = new Map<string, TSchema>();

/**
 * Gives a shape its name, which no other shape has. It is a component of the OpenAPI document then, and referred to wherever it is used.
 * A copy with members or a description of its own (`t.Optional`, `{ ...shape, description }`) keeps the name; one with other properties must not.
 */
export const named = <T extends TSchema>(name: string, schema: T): T => {
  if (taken.has(name)) throw new Error(`two shapes are named ${name}`);
  const own = { ...schema, [NAME]: name };
  taken.set(name, own);
  return own;
};

/** An object with a name: its members, and what is said of it as a whole. */
export const namedObject = <P extends TProperties>(name: string, members: P, options?: ObjectOptions): TObject<P> =>
  named(name, t.Object(members, options));

/** All shapes that have a name, as they were defined. */
export const namedShapes: ReadonlyMap<string, TSchema> = taken;
