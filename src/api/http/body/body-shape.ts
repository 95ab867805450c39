// Reads a body by its schema before Elysia does, because Elysia's normalization silently turns a string into a list of letters and a number
// into an empty map, and drops what the schema forbids. Applies to every route: lists must be lists and objects objects (rule HT-15); null
// and the zero UUID, which upstream clients cannot omit, are treated as absent for optional members (rule HT-29); members that the schema
// forbids are rejected by name (rule HT-30). All other checks are left to the schema.
import type { TSchema } from "@sinclair/typebox";
import { invalid, type Validation } from "#base/errors.ts";
import { NIL_UUID } from "#base/ids.ts";
import { isStrict } from "#schema/strict.ts";
import { makeMissingBodyError, NO_BODY } from "./body.ts";

/** Removes absent members from a value and returns the path of the first invalid member, relative to the value. */
type Reader = (value: unknown) => Validation | undefined;

/** Prefixes the name to a field's path. Called only for errors, because a batch has thousands of fields. */
const prefixField = (name: string | number, { field, detail }: Validation): Validation => ({
  field: field === "" ? String(name) : `${name}.${field}`,
  detail,
});

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Returns undefined for schemas whose values have no members. */
const makeReader = (schema: TSchema): Reader | undefined => {
  // Unions are left to the validator; only `something or null` is common enough to handle here.
  if (Array.isArray(schema.anyOf)) return makeNullableReader(schema.anyOf as TSchema[]);
  if (schema.type === "array") return makeListReader((schema.items ?? {}) as TSchema);
  if (schema.type === "object") return makeObjectReader(schema);
  return undefined;
};

const makeNullableReader = (members: TSchema[]): Reader | undefined => {
  const others = members.filter(({ type }) => type !== "null");
  if (others.length !== 1 || others.length === members.length) return undefined;
  const read = makeReader(others[0] as TSchema);
  return read && ((value) => (value === null ? undefined : read(value)));
};

/**
 * Elysia puts a value that is not a string into its message, and fails on an object whose `toString` is not a function. Such values are
 * replaced by an empty object, which is equally invalid.
 */
const isHarmful = (value: unknown): boolean => typeof value === "object" && value !== null;

const makeListReader = (items: TSchema): Reader => {
  const item = makeReader(items);
  const hasTextItems = items.type === "string";
  return (value) => {
    if (!Array.isArray(value)) return { field: "", detail: "must be a list" };
    for (let i = 0; i < value.length; i++) {
      if (hasTextItems && isHarmful(value[i])) value[i] = {};
      const problem = item?.(value[i]);
      if (problem) return prefixField(i, problem);
    }
    return undefined;
  };
};

const makeObjectReader = (schema: TSchema): Reader => {
  const properties = Object.entries((schema.properties ?? {}) as Record<string, TSchema>);
  const names = new Set(properties.map(([name]) => name));
  const refusesUnknown = isStrict(schema);
  const acceptsAnyName = "patternProperties" in schema;
  const readers = properties.flatMap(([name, memberSchema]) => {
    const read = makeReader(memberSchema);
    return read ? [[name, read] as const] : [];
  });
  const required = (schema.required ?? []) as string[];
  // The validator treats a member of any type as optional.
  const requiredUntyped = properties.flatMap(([name, memberSchema]) =>
    required.includes(name) && acceptsAnything(memberSchema) ? [name] : [],
  );
  const texts = properties.flatMap(([name, memberSchema]) => (memberSchema.type === "string" ? [name] : []));
  const absenceChecks = properties.flatMap(([name, memberSchema]) => {
    const isAbsent = required.includes(name) ? undefined : makeAbsenceCheck(memberSchema);
    return isAbsent ? [[name, isAbsent] as const] : [];
  });
  return (value) => {
    if (!isObject(value)) return { field: "", detail: "must be an object" };
    if (acceptsAnyName && Object.hasOwn(value, "__proto__")) return { field: "__proto__", detail: INVALID_NAME };
    if (refusesUnknown) {
      const unknown = Object.keys(value).find((name) => !names.has(name));
      // A long name is a mistake or an attack; the error does not repeat all of it.
      if (unknown !== undefined) return { field: unknown.slice(0, 64), detail: formatUnknownName(names) };
    }
    for (const name of requiredUntyped) if (!Object.hasOwn(value, name)) return { field: name, detail: "is required" };
    for (const [name, isAbsent] of absenceChecks) if (isAbsent(value[name])) delete value[name];
    for (const name of texts) if (isHarmful(value[name])) value[name] = {};
    for (const [name, read] of readers) {
      const member = value[name];
      // The schema check names missing members.
      const problem = member === undefined ? undefined : read(member);
      if (problem) return prefixField(name, problem);
    }
    return undefined;
  };
};

const acceptsAnything = ({ type, anyOf, const: constant }: TSchema): boolean =>
  type === undefined && anyOf === undefined && constant === undefined;

/** Schema checks ignore `__proto__` and copies drop it, so an invalid value under it would pass. */
const INVALID_NAME = "cannot be a name here";

const formatUnknownName = (names: ReadonlySet<string>): string => `is unknown; use one of ${[...names].join(", ")}`;

/** Marks a UUID whose zero value has a meaning, such as "remove". */
export const ZERO_MEANS = "x-zero";

/** Returns a predicate for values that mean "absent" in an optional member of this schema, or undefined if every value is meaningful. */
const makeAbsenceCheck = (schema: TSchema): ((value: unknown) => boolean) | undefined => {
  const isNull = !acceptsNull(schema);
  const isZero = schema.format === "uuid" && schema[ZERO_MEANS] === undefined;
  if (isNull && isZero) return (value) => value === null || value === NIL_UUID;
  return isNull ? (value) => value === null : undefined;
};

const acceptsNull = ({ type, anyOf }: TSchema): boolean =>
  type === "null" || (type === undefined && !Array.isArray(anyOf)) || (Array.isArray(anyOf) && anyOf.some(acceptsNull));

/** Returns whether every member is optional; the request can then omit the body (rule HT-24). */
export const isAllOptional = ({ type, required }: { type?: unknown; required?: unknown }): boolean =>
  type === "object" && (!Array.isArray(required) || required.length === 0);

/** Body readers by method and route. */
export class BodyReaders {
  /** Created with the first body of a route: creating hundreds would take a tenth of the startup time. */
  readonly #readers = new Map<string, Reader | undefined>();
  readonly #schemas = new Map<string, TSchema>();
  /** Routes that take a body, and whether it is required. */
  readonly #required = new Map<string, boolean>();

  constructor(routes: readonly { method: string; path: string; hooks: { body?: unknown } }[]) {
    for (const { method, path, hooks } of routes) {
      if (!isObject(hooks.body)) continue;
      this.#required.set(`${method} ${path}`, !isAllOptional(hooks.body));
      this.#schemas.set(`${method} ${path}`, hooks.body as unknown as TSchema);
    }
  }

  /** Removes absent members from a body. Throws 400 and names the place with the wrong shape. */
  read(method: string, route: string, body: unknown): void {
    if (body === undefined) return;
    const problem = this.#getReader(`${method} ${route}`)?.(body);
    if (problem) throw invalid("Validation failed.", [problem]);
  }

  #getReader(name: string): Reader | undefined {
    const schema = this.#schemas.get(name);
    if (schema && !this.#readers.has(name)) this.#readers.set(name, makeReader(schema));
    return this.#readers.get(name);
  }

  /** Returns the body to use when none was sent: NO_BODY or an empty object. Throws 400 where one is required (rule HT-24). */
  readEmpty(method: string, route: string): object | typeof NO_BODY {
    const isRequired = this.#required.get(`${method} ${route}`);
    if (isRequired) throw makeMissingBodyError();
    // Not undefined, because Elysia would then parse the body by its content type.
    return isRequired === undefined ? NO_BODY : {};
  }
}
