// Shapes in the words of OpenAPI 3.0. What has a name (src/schema/named.ts), or is an object within one that has, becomes a component and is
// referred to from wherever it is used.
import { NAME, namedShapes } from "#schema/named.ts";
import { isStrict } from "#schema/strict.ts";

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

/** Bodies take null for optional members, as the edge does (rule HT-29); answers do not have it. */
type Direction = "answer" | "body";

const UNKNOWN_TO_3_0 = new Set(["$id", "$schema", "examples", "patternProperties", "error", "x-strict", NAME]);

export class Shapes {
  /** By name, in the order in which they were met. */
  readonly components: JsonObject = {};
  readonly #answeredNames = new Set<string>();
  readonly #made = new Map<string, JsonObject>();
  /** What a named shape is called in bodies, by name and whether it is a whole body. */
  readonly #inBodies = new Map<string, string>();

  /** A shape that is answered. `name` is for an object without a name of its own. */
  answer(schema: Json, name: string): Json {
    return this.#shape(schema, name, "answer", true);
  }

  /** A whole body. All answers are known by then: what is answered as well is called as there, where it is the same. */
  body(schema: Json, name: string): Json {
    return this.#shape(schema, name, "body", true);
  }

  #shape(schema: Json, name: string, direction: Direction, isWhole = false): Json {
    if (Array.isArray(schema)) return schema.map((one) => this.#shape(one, name, direction));
    if (schema === null || typeof schema !== "object") return schema;
    const given = schema[NAME] as string | undefined;
    const own = given ?? (isRecord(schema) || schema.type !== "object" ? undefined : name);
    if (own === undefined) return this.#tidy(schema, name, direction);
    const called = direction === "answer" ? this.#answered(own, schema) : this.#sent(own, schema, isWhole);
    const described = schema.description;
    const { description } = this.components[called] as JsonObject;
    const ref = { $ref: `#/components/schemas/${called}` };
    return described === undefined || described === description ? ref : { allOf: [ref], description: described };
  }

  #answered(name: string, schema: JsonObject): string {
    if (!(NAME in schema)) this.#mustBeFree(name, schema);
    if (!(name in this.components)) {
      this.#answeredNames.add(name);
      this.components[name] = {};
      this.components[name] = this.#defined(name, schema, "answer");
    }
    return name;
  }

  /** A name that is made of where an object stands must not be that of another shape. */
  #mustBeFree(name: string, schema: JsonObject): void {
    const known = this.#made.get(name) ?? schema;
    if (namedShapes.has(name) || JSON.stringify(known) !== JSON.stringify(schema))
      throw new Error(`an object would be named ${name} as another one: give it a name of its own`);
    this.#made.set(name, schema);
  }

  #sent(name: string, schema: JsonObject, isWhole: boolean): string {
    const key = `${name} ${isWhole}`;
    const known = this.#inBodies.get(key);
    if (known !== undefined) return known;
    const shape = this.#defined(name, schema, "body");
    const called = this.#nameInBodies(name, shape, isWhole);
    this.#inBodies.set(key, called);
    this.components[called] ??= shape;
    return called;
  }

  /** `CreateChatRequest` for a whole body, `PermissionRuleInput` within one, and as in answers where it is the same as there. */
  #nameInBodies(name: string, shape: JsonObject, isWhole: boolean): string {
    const answered = this.#answeredNames.has(name) ? this.components[name] : undefined;
    if (answered !== undefined && Bun.deepEquals(answered, shape)) return name;
    if (isWhole) return name.endsWith("Request") ? name : `${name}Request`;
    return answered === undefined ? name : `${name}Input`;
  }

  /** A shape with a name, as it was defined: where it is used it may be described in other words. */
  #defined(name: string, schema: JsonObject, direction: Direction): JsonObject {
    const defined = NAME in schema ? (namedShapes.get(name) as JsonObject | undefined) : undefined;
    return this.#tidy(defined ? { ...schema, description: defined.description as Json } : schema, name, direction);
  }

  #tidy(schema: JsonObject, name: string, direction: Direction): JsonObject {
    const out: JsonObject = {};
    for (const [key, value] of Object.entries(schema)) {
      if (UNKNOWN_TO_3_0.has(key) || value === undefined) continue;
      // Elysia writes it into what it drops quietly, once the route has been called.
      if (key === "additionalProperties" && value === false && !isStrict(schema)) continue;
      // Generators know no enums of booleans; which one it must be, the description says.
      if (key === "const" && typeof value === "boolean") continue;
      if (key === "const") out.enum = [value];
      else if (key === "properties") out.properties = this.#members(value as JsonObject, schema, name, direction);
      else if (key === "items") out.items = this.#shape(value, singular(name), direction);
      else if (key === "anyOf") out.anyOf = this.#variants(value as JsonObject[], name, direction);
      else if (PLAIN.has(key)) out[key] = value;
      else out[key] = this.#shape(value, name, direction);
    }
    const values = schema.patternProperties as JsonObject | undefined;
    if (values) out.additionalProperties = this.#shape(Object.values(values)[0] as Json, singular(name), direction);
    return this.#tidyUnion(out);
  }

  #members(members: JsonObject, { required = [] }: JsonObject, name: string, direction: Direction): JsonObject {
    return mapEntries(members, (member, key) => {
      const shape = this.#shape(member, name + pascal(key), direction) as JsonObject;
      return direction === "body" && !(required as string[]).includes(key) ? this.#orNull(shape) : shape;
    });
  }

  /** The shape, or null. `nullable` says nothing without a `type` alongside it. */
  #orNull(shape: JsonObject): JsonObject {
    if ("type" in shape) return { ...shape, nullable: true };
    if (shape.$ref !== undefined) return { type: this.#typeAt(shape), nullable: true, allOf: [shape] };
    const [only] = (shape.allOf ?? []) as JsonObject[];
    if (only !== undefined) return { type: this.#typeAt(only), nullable: true, ...shape };
    const [first, ...others] = (shape.anyOf ?? []) as JsonObject[];
    return first === undefined ? shape : { ...shape, anyOf: [this.#orNull(first), ...others] };
  }

  #typeAt({ $ref }: JsonObject): Json {
    const { type } = (this.components[String($ref).split("/").at(-1) ?? ""] ?? {}) as JsonObject;
    // Unknown as long as a shape that has itself within it is being made; only objects do.
    return type ?? "object";
  }

  /** A union with null becomes `nullable`, a union of constants becomes one enum. */
  #tidyUnion(schema: JsonObject): JsonObject {
    const members = schema.anyOf as JsonObject[] | undefined;
    if (!members) return schema.type === "null" ? { ...schema, type: "string", nullable: true } : schema;
    const { anyOf: _, ...rest } = schema;
    const given = members.filter((member) => !nullOnly(member));
    const shape = joined(given, rest);
    return given.length < members.length ? this.#orNull(shape) : shape;
  }

  /** Members of a union are told apart by the constant that says which they are, where there is one. */
  #variants(members: JsonObject[], name: string, direction: Direction): Json[] {
    const shown = members.filter(({ type }) => type !== "null");
    // What Elysia adds for numbers in queries; answers are JSON.
    const isText = ({ type, format }: JsonObject) =>
      type === "string" && ["integer", "numeric", "boolean"].includes(String(format));
    const given = direction === "answer" && shown.length === 2 ? members.filter((one) => !isText(one)) : members;
    if (shown.length === 1) return given.map((member) => this.#shape(member, name, direction));
    return given.map((member) => {
      const { type } = (member.properties ?? {}) as { type?: JsonObject };
      return this.#shape(member, name + pascal(String(type?.const ?? "object")), direction);
    });
  }
}

/** Values that are no shapes. */
const PLAIN = new Set(["default", "enum", "required", "example"]);

const isRecord = ({ properties = {} }: JsonObject): boolean => Object.keys(properties as JsonObject).length === 0;

const pascal = (text: string): string =>
  text
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join("");

/** What one of several is called: `ChatFiles` -> `ChatFile`. */
const singular = (name: string): string => {
  if (name.endsWith("ies")) return `${name.slice(0, -3)}y`;
  return /[^s]s$/.test(name) ? name.slice(0, -1) : `${name}Item`;
};

const mapEntries = (object: JsonObject, map: (value: Json, key: string) => Json): JsonObject =>
  Object.fromEntries(Object.entries(object).map(([key, value]) => [key, map(value, key)]));

/** What a union says of itself, alongside what it is a union of. */
const nullOnly = ({ nullable, type, enum: values }: JsonObject): boolean =>
  nullable === true && type === "string" && !values;

/** Several shapes as one, with what is said of all of them. */
const joined = (shapes: JsonObject[], rest: JsonObject): JsonObject => {
  const [first] = shapes;
  if (first === undefined || shapes.length === 0) return rest;
  if (shapes.every((one) => Array.isArray(one.enum) && one.type === first.type)) {
    return { ...rest, type: first.type ?? "string", enum: shapes.flatMap((one) => one.enum as Json[]) };
  }
  if (shapes.length > 1) return { ...rest, anyOf: shapes };
  return first.$ref === undefined ? { ...first, ...rest } : { ...rest, allOf: [first] };
};
