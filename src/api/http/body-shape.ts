// Lists where lists belong, objects where objects belong: looked at before Elysia's normalisation, which would quietly make a list of
// a text's letters and an empty map of a number (rule HT-15). Everything else about a body is its schema's business.
import type { TSchema } from "@sinclair/typebox";
import { invalid, type Validation } from "#base/errors.ts";
import { bodyMissing, NO_BODY } from "./body.ts";

/** Names the first place that has the wrong shape. */
type Shape = (value: unknown, place: string) => Validation | undefined;

const below = (place: string, name: string | number): string => (place === "" ? String(name) : `${place}.${name}`);

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Undefined for schemas whose values have no parts. */
const shapeOf = (schema: TSchema): Shape | undefined => {
  // A union says by itself what fits; only `something or null` is common enough to look into.
  if (Array.isArray(schema.anyOf)) return shapeOfNullable(schema.anyOf as TSchema[]);
  if (schema.type === "array") return listOf(shapeOf((schema.items ?? {}) as TSchema));
  if (schema.type === "object") return objectOf(schema);
  return undefined;
};

const shapeOfNullable = (members: TSchema[]): Shape | undefined => {
  const others = members.filter(({ type }) => type !== "null");
  if (others.length !== 1 || others.length === members.length) return undefined;
  const shape = shapeOf(others[0] as TSchema);
  return shape && ((value, place) => (value === null ? undefined : shape(value, place)));
};

const listOf =
  (item: Shape | undefined): Shape =>
  (value, place) => {
    if (!Array.isArray(value)) return { field: place, detail: "Expected array" };
    if (!item) return undefined;
    for (let i = 0; i < value.length; i++) {
      const wrong = item(value[i], below(place, i));
      if (wrong) return wrong;
    }
    return undefined;
  };

const objectOf = (schema: TSchema): Shape => {
  const members = Object.entries((schema.properties ?? {}) as Record<string, TSchema>).flatMap(([name, of]) => {
    const shape = shapeOf(of);
    return shape ? [[name, shape] as const] : [];
  });
  return (value, place) => {
    if (!isObject(value)) return { field: place, detail: "Expected object" };
    for (const [name, shape] of members) {
      const member = value[name];
      // What is missing is named by the schema.
      const wrong = member === undefined ? undefined : shape(member, below(place, name));
      if (wrong) return wrong;
    }
    return undefined;
  };
};

/** An object that may be empty: a request may as well leave it away (rule HT-24). */
export const isAllOptional = ({ type, required }: { type?: unknown; required?: unknown }): boolean =>
  type === "object" && (!Array.isArray(required) || required.length === 0);

/** The shapes of the routes that take a body, found by method and route. */
export class BodyShapes {
  readonly #shapes = new Map<string, Shape>();
  /** Routes that take a body, and whether one must be sent. */
  readonly #required = new Map<string, boolean>();

  constructor(routes: readonly { method: string; path: string; hooks: { body?: unknown } }[]) {
    for (const { method, path, hooks } of routes) {
      if (!isObject(hooks.body)) continue;
      this.#required.set(`${method} ${path}`, !isAllOptional(hooks.body));
      const shape = shapeOf(hooks.body as unknown as TSchema);
      if (shape) this.#shapes.set(`${method} ${path}`, shape);
    }
  }

  /** Throws 400 that names the place where a body has the wrong shape. */
  check(method: string, route: string, body: unknown): void {
    if (body === undefined) return;
    const wrong = this.#shapes.get(`${method} ${route}`)?.(body, "");
    if (wrong) throw invalid("Validation failed.", [wrong]);
  }

  /** What stands for a body that was not sent: none, or an empty one. Throws 400 where one is needed (rule HT-24). */
  ofNothing(method: string, route: string): object | typeof NO_BODY {
    const isRequired = this.#required.get(`${method} ${route}`);
    if (isRequired) throw bodyMissing();
    // Not undefined: Elysia would go on and parse by the content type.
    return isRequired === undefined ? NO_BODY : {};
  }
}
