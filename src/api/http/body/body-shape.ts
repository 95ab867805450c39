// Reads a body by its schema before Elysia does, whose normalisation would quietly make a list of a text's letters and an empty map of a
// number, and drop what the schema forbids. In this one place, for every route: lists are lists and objects objects (rule HT-15); what a
// genuine client cannot leave away, null and the zero UUID, counts as left away where a member is optional (rule HT-29); members that
// the schema forbids are refused by name (rule HT-30). Everything else about a body is its schema's business.
import type { TSchema } from "@sinclair/typebox";
import { invalid, type Validation } from "#base/errors.ts";
import { NIL_UUID } from "#base/ids.ts";
import { isStrict } from "#schema/strict.ts";
import { bodyMissing, NO_BODY } from "./body.ts";

/** Takes out of a value what counts as left away; answers the first place that is wrong, as seen from the value itself. */
type Reader = (value: unknown) => Validation | undefined;

/** The same place as seen from whatever holds the value under this name. Made only for what is wrong: a batch has thousands of places. */
const below = (name: string | number, { field, detail }: Validation): Validation => ({
  field: field === "" ? String(name) : `${name}.${field}`,
  detail,
});

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Undefined for schemas whose values have no members. */
const makeReader = (schema: TSchema): Reader | undefined => {
  // A union says on its own what fits; only `something or null` is common enough to look into.
  if (Array.isArray(schema.anyOf)) return readerOfNullable(schema.anyOf as TSchema[]);
  if (schema.type === "array") return readerOfList((schema.items ?? {}) as TSchema);
  if (schema.type === "object") return readerOfObject(schema);
  return undefined;
};

const readerOfNullable = (members: TSchema[]): Reader | undefined => {
  const others = members.filter(({ type }) => type !== "null");
  if (others.length !== 1 || others.length === members.length) return undefined;
  const read = makeReader(others[0] as TSchema);
  return read && ((value) => (value === null ? undefined : read(value)));
};

/** Elysia puts what is no text into its message, and fails itself with an object whose `toString` is none: an empty one is as wrong. */
const isHarmful = (value: unknown): boolean => typeof value === "object" && value !== null;

const readerOfList = (items: TSchema): Reader => {
  const item = makeReader(items);
  const areTexts = items.type === "string";
  return (value) => {
    if (!Array.isArray(value)) return { field: "", detail: "must be a list" };
    for (let i = 0; i < value.length; i++) {
      if (areTexts && isHarmful(value[i])) value[i] = {};
      const wrong = item?.(value[i]);
      if (wrong) return below(i, wrong);
    }
    return undefined;
  };
};

const readerOfObject = (schema: TSchema): Reader => {
  const properties = Object.entries((schema.properties ?? {}) as Record<string, TSchema>);
  const names = new Set(properties.map(([name]) => name));
  const refusesMore = isStrict(schema);
  const takesAnyName = "patternProperties" in schema;
  const readers = properties.flatMap(([name, of]) => {
    const read = makeReader(of);
    return read ? [[name, read] as const] : [];
  });
  const required = (schema.required ?? []) as string[];
  // The validator takes a member that may be anything for one that need not be there.
  const untyped = properties.flatMap(([name, of]) => (required.includes(name) && isAnything(of) ? [name] : []));
  const texts = properties.flatMap(([name, of]) => (of.type === "string" ? [name] : []));
  const absences = properties.flatMap(([name, of]) => {
    const isAbsent = required.includes(name) ? undefined : absenceIn(of);
    return isAbsent ? [[name, isAbsent] as const] : [];
  });
  return (value) => {
    if (!isObject(value)) return { field: "", detail: "must be an object" };
    if (takesAnyName && Object.hasOwn(value, "__proto__")) return { field: "__proto__", detail: NO_NAME };
    if (refusesMore) {
      const unknown = Object.keys(value).find((name) => !names.has(name));
      // Long names are someone's mistake or attack; the answer does not repeat them whole.
      if (unknown !== undefined) return { field: unknown.slice(0, 64), detail: notKnown(names) };
    }
    for (const name of untyped) if (!Object.hasOwn(value, name)) return { field: name, detail: "is required" };
    for (const [name, isAbsent] of absences) if (isAbsent(value[name])) delete value[name];
    for (const name of texts) if (isHarmful(value[name])) value[name] = {};
    for (const [name, read] of readers) {
      const member = value[name];
      // What is missing is named by the schema.
      const wrong = member === undefined ? undefined : read(member);
      if (wrong) return below(name, wrong);
    }
    return undefined;
  };
};

const isAnything = ({ type, anyOf, const: constant }: TSchema): boolean =>
  type === undefined && anyOf === undefined && constant === undefined;

/** Checks by schema do not see `__proto__` and copies drop it, so that a wrong value under it would pass. */
const NO_NAME = "cannot be a name here";

const notKnown = (names: ReadonlySet<string>): string => `is not known here; known are ${[...names].join(", ")}`;

/** The marker of a UUID whose zero value says something of its own, such as "none any more". */
export const ZERO_MEANS = "x-zero";

/** What an optional member of this schema may be in place of being left away. Undefined: nothing, every value says something. */
const absenceIn = (schema: TSchema): ((value: unknown) => boolean) | undefined => {
  const isNull = !takesNull(schema);
  const isZero = schema.format === "uuid" && schema[ZERO_MEANS] === undefined;
  if (isNull && isZero) return (value) => value === null || value === NIL_UUID;
  return isNull ? (value) => value === null : undefined;
};

const takesNull = ({ type, anyOf }: TSchema): boolean =>
  type === "null" || (type === undefined && !Array.isArray(anyOf)) || (Array.isArray(anyOf) && anyOf.some(takesNull));

/** An object that may be empty: a request may as well leave it away (rule HT-24). */
export const isAllOptional = ({ type, required }: { type?: unknown; required?: unknown }): boolean =>
  type === "object" && (!Array.isArray(required) || required.length === 0);

/** How the bodies of routes are read, found by method and route. */
export class BodyReaders {
  /** Made with the first body of a route: hundreds at a start would cost it a tenth of its time. */
  readonly #readers = new Map<string, Reader | undefined>();
  readonly #schemas = new Map<string, TSchema>();
  /** Routes that take a body, and whether one must be sent. */
  readonly #required = new Map<string, boolean>();

  constructor(routes: readonly { method: string; path: string; hooks: { body?: unknown } }[]) {
    for (const { method, path, hooks } of routes) {
      if (!isObject(hooks.body)) continue;
      this.#required.set(`${method} ${path}`, !isAllOptional(hooks.body));
      this.#schemas.set(`${method} ${path}`, hooks.body as unknown as TSchema);
    }
  }

  /** Takes out of a body what counts as left away. Throws 400 that names the place where it has the wrong shape. */
  read(method: string, route: string, body: unknown): void {
    if (body === undefined) return;
    const wrong = this.#readerOf(`${method} ${route}`)?.(body);
    if (wrong) throw invalid("Validation failed.", [wrong]);
  }

  #readerOf(name: string): Reader | undefined {
    const schema = this.#schemas.get(name);
    if (schema && !this.#readers.has(name)) this.#readers.set(name, makeReader(schema));
    return this.#readers.get(name);
  }

  /** What stands for a body that was not sent: none, or an empty one. Throws 400 where one is needed (rule HT-24). */
  ofNothing(method: string, route: string): object | typeof NO_BODY {
    const isRequired = this.#required.get(`${method} ${route}`);
    if (isRequired) throw bodyMissing();
    // Not undefined: Elysia would go on and parse by the content type.
    return isRequired === undefined ? NO_BODY : {};
  }
}
