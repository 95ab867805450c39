// Converts schemas to OpenAPI 3.0. A schema with a name (src/schema/shape-names.ts), or an object inside one, becomes a component that all uses
// reference.
import { NAME, namedShapes } from "#schema/shape-names.ts";
import { isStrict } from "#schema/strict.ts";

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

/** Bodies accept null for optional members, as the HTTP layer does (rule HT-29); responses never contain it. */
type Direction = "answer" | "body";

const UNKNOWN_TO_3_0 = new Set(["$id", "$schema", "examples", "patternProperties", "error", "x-strict", NAME]);

export class Shapes {
  /** By name, in order of first use. */
  readonly components: JsonObject = {};
  readonly #answerNames = new Set<string>();
  readonly #unnamed = new Map<string, JsonObject>();
  /** Component names of named schemas in bodies, by schema name and whether it is a whole body. */
  readonly #bodyNames = new Map<string, string>();

  /** Adds a response schema. `name` is used for an object without its own name. */
  answer(schema: Json, name: string): Json {
    return this.#shape(schema, name, "answer", true);
  }

  /** Adds a whole body. Must run after all responses: a schema used in both keeps the response's name if it is identical. */
  body(schema: Json, name: string): Json {
    return this.#shape(schema, name, "body", true);
  }

  #shape(schema: Json, name: string, direction: Direction, isWhole = false): Json {
    if (Array.isArray(schema)) return schema.map((one) => this.#shape(one, name, direction));
    if (schema === null || typeof schema !== "object") return schema;
    const declaredName = schema[NAME] as string | undefined;
    const ownName = declaredName ?? (isRecord(schema) || schema.type !== "object" ? undefined : name);
    if (ownName === undefined) return this.#convert(schema, name, direction);
    const component =
      direction === "answer" ? this.#addAnswer(ownName, schema) : this.#addBody(ownName, schema, isWhole);
    const ownDescription = schema.description;
    const { description } = this.components[component] as JsonObject;
    const ref = { $ref: `#/components/schemas/${component}` };
    return ownDescription === undefined || ownDescription === description
      ? ref
      : { allOf: [ref], description: ownDescription };
  }

  #addAnswer(name: string, schema: JsonObject): string {
    if (!(NAME in schema)) this.#requireFree(name, schema);
    if (!(name in this.components)) {
      this.#answerNames.add(name);
      this.components[name] = {};
      this.components[name] = this.#define(name, schema, "answer");
    }
    return name;
  }

  /** Throws when a name derived from an object's position is already taken by another schema. */
  #requireFree(name: string, schema: JsonObject): void {
    const existing = this.#unnamed.get(name) ?? schema;
    if (namedShapes.has(name) || JSON.stringify(existing) !== JSON.stringify(schema))
      throw new Error(`an object would be named ${name} as another one: give it a name of its own`);
    this.#unnamed.set(name, schema);
  }

  #addBody(name: string, schema: JsonObject, isWhole: boolean): string {
    const key = `${name} ${isWhole}`;
    const existing = this.#bodyNames.get(key);
    if (existing !== undefined) return existing;
    const shape = this.#define(name, schema, "body");
    const component = this.#toBodyName(name, shape, isWhole);
    this.#bodyNames.set(key, component);
    this.components[component] ??= shape;
    return component;
  }

  /**
   * Returns `CreateChatRequest` for a whole body and `PermissionRuleInput` for a part of one, or the response's name if both are identical.
   */
  #toBodyName(name: string, shape: JsonObject, isWhole: boolean): string {
    const answerShape = this.#answerNames.has(name) ? this.components[name] : undefined;
    if (answerShape !== undefined && Bun.deepEquals(answerShape, shape)) return name;
    if (isWhole) return name.endsWith("Request") ? name : `${name}Request`;
    return answerShape === undefined ? name : `${name}Input`;
  }

  /** Returns a named schema with its original description; uses of it can have other descriptions. */
  #define(name: string, schema: JsonObject, direction: Direction): JsonObject {
    const original = NAME in schema ? (namedShapes.get(name) as JsonObject | undefined) : undefined;
    return this.#convert(original ? { ...schema, description: original.description as Json } : schema, name, direction);
  }

  #convert(schema: JsonObject, name: string, direction: Direction): JsonObject {
    const converted: JsonObject = {};
    for (const [key, value] of Object.entries(schema)) {
      if (UNKNOWN_TO_3_0.has(key) || value === undefined) continue;
      // Elysia adds this to schemas whose unknown members it drops, once a route has been called.
      if (key === "additionalProperties" && value === false && !isStrict(schema)) continue;
      // Code generators do not support boolean enums; the description says which value is required.
      if (key === "const" && typeof value === "boolean") continue;
      if (key === "const") converted.enum = [value];
      else if (key === "properties") converted.properties = this.#members(value as JsonObject, schema, name, direction);
      else if (key === "items") converted.items = this.#shape(value, toSingular(name), direction);
      else if (key === "anyOf") converted.anyOf = this.#variants(value as JsonObject[], name, direction);
      else if (COPIED_KEYWORDS.has(key)) converted[key] = value;
      else converted[key] = this.#shape(value, name, direction);
    }
    const values = schema.patternProperties as JsonObject | undefined;
    if (values)
      converted.additionalProperties = this.#shape(Object.values(values)[0] as Json, toSingular(name), direction);
    return this.#convertUnion(converted);
  }

  #members(members: JsonObject, { required = [] }: JsonObject, name: string, direction: Direction): JsonObject {
    return mapEntries(members, (member, key) => {
      const shape = this.#shape(member, name + toPascalCase(key), direction) as JsonObject;
      return direction === "body" && !(required as string[]).includes(key) ? this.#makeNullable(shape) : shape;
    });
  }

  /** Returns the schema or null. `nullable` has no effect without a `type` next to it. */
  #makeNullable(shape: JsonObject): JsonObject {
    if ("type" in shape) return { ...shape, nullable: true };
    if (shape.$ref !== undefined) return { type: this.#getType(shape), nullable: true, allOf: [shape] };
    const [only] = (shape.allOf ?? []) as JsonObject[];
    if (only !== undefined) return { type: this.#getType(only), nullable: true, ...shape };
    const [first, ...others] = (shape.anyOf ?? []) as JsonObject[];
    return first === undefined ? shape : { ...shape, anyOf: [this.#makeNullable(first), ...others] };
  }

  #getType({ $ref }: JsonObject): Json {
    const { type } = (this.components[String($ref).split("/").at(-1) ?? ""] ?? {}) as JsonObject;
    // The type of a recursive schema is unknown while it is being built; only objects are recursive.
    return type ?? "object";
  }

  /** A union with null becomes `nullable`, a union of constants becomes one enum. */
  #convertUnion(schema: JsonObject): JsonObject {
    const members = schema.anyOf as JsonObject[] | undefined;
    if (!members) return schema.type === "null" ? { ...schema, type: "string", nullable: true } : schema;
    const { anyOf: _, ...rest } = schema;
    const nonNull = members.filter((member) => !isNullOnly(member));
    const shape = mergeSchemas(nonNull, rest);
    return nonNull.length < members.length ? this.#makeNullable(shape) : shape;
  }

  /** Union members are distinguished by a constant where there is one. */
  #variants(members: JsonObject[], name: string, direction: Direction): Json[] {
    const nonNull = members.filter(({ type }) => type !== "null");
    // The text variants that Elysia adds for numbers in queries; responses are JSON.
    const isText = ({ type, format }: JsonObject) =>
      type === "string" && ["integer", "numeric", "boolean"].includes(String(format));
    const kept = direction === "answer" && nonNull.length === 2 ? members.filter((one) => !isText(one)) : members;
    if (nonNull.length === 1) return kept.map((member) => this.#shape(member, name, direction));
    return kept.map((member) => {
      const { type } = (member.properties ?? {}) as { type?: JsonObject };
      return this.#shape(member, name + toPascalCase(String(type?.const ?? "object")), direction);
    });
  }
}

/** Keywords whose values are not schemas. */
const COPIED_KEYWORDS = new Set(["default", "enum", "required", "example"]);

const isRecord = ({ properties = {} }: JsonObject): boolean => Object.keys(properties as JsonObject).length === 0;

const toPascalCase = (text: string): string =>
  text
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join("");

/** Returns the singular of a list's name: `ChatFiles` -> `ChatFile`. */
const toSingular = (name: string): string => {
  if (name.endsWith("ies")) return `${name.slice(0, -3)}y`;
  return /[^s]s$/.test(name) ? name.slice(0, -1) : `${name}Item`;
};

const mapEntries = (object: JsonObject, map: (value: Json, key: string) => Json): JsonObject =>
  Object.fromEntries(Object.entries(object).map(([key, value]) => [key, map(value, key)]));

/** Returns whether a union member says only that null is allowed. */
const isNullOnly = ({ nullable, type, enum: values }: JsonObject): boolean =>
  nullable === true && type === "string" && !values;

/** Merges several schemas into one, with the keywords that apply to all of them. */
const mergeSchemas = (shapes: JsonObject[], rest: JsonObject): JsonObject => {
  const [first] = shapes;
  if (first === undefined || shapes.length === 0) return rest;
  if (shapes.every((one) => Array.isArray(one.enum) && one.type === first.type)) {
    return { ...rest, type: first.type ?? "string", enum: shapes.flatMap((one) => one.enum as Json[]) };
  }
  if (shapes.length > 1) return { ...rest, anyOf: shapes };
  return first.$ref === undefined ? { ...first, ...rest } : { ...rest, allOf: [first] };
};
