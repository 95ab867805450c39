// Repairs the input schemas of tools: MCP servers send schemas that some model servers refuse together with the whole request. The repaired
// schema uses only the part of JSON Schema that all of them accept. Pure.

import { sha256 } from "#base/ids.ts";
import { trimEnds } from "#base/text/trim.ts";

type Members = Readonly<Record<string, unknown>>;
type Node = Record<string, unknown>;

const isMembers = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** A schema that every receiver accepts, with the mapping between its names and those of the tool's server. */
export class RepairedSchema {
  readonly schema: Members;
  /** Constraints that the schema cannot express, as text for the model; empty if none were lost. */
  readonly note: string;
  readonly #renames: Renames;

  constructor(schema: Members, note: string, renames: Renames) {
    this.schema = schema;
    this.note = note;
    this.#renames = renames;
  }

  /** Converts the model's arguments to the names of the tool's server. */
  fromModel(args: unknown): unknown {
    return this.#renames.isEmpty ? args : this.#renames.apply(this.schema, args, "fromModel");
  }

  /** Converts the arguments of an earlier call to the names that the model uses. */
  toModel(args: unknown): unknown {
    return this.#renames.isEmpty ? args : this.#renames.apply(this.schema, args, "toModel");
  }
}

/** Returns the repaired schema; undefined if the schema does not describe an object. */
export const repairSchema = (given: unknown): RepairedSchema | undefined => {
  const start = given === undefined || given === null || given === true ? {} : given;
  if (!isMembers(start)) return undefined;
  const repair = new Repair(start);
  const root = repair.resolveReferences(start);
  if (!isObjectType(root)) return undefined;
  const { node, note } = repair.root(root);
  return new RepairedSchema(node, note, repair.renames);
};

const isObjectType = ({ type }: Members): boolean => {
  const types = listTypes(type);
  return types.length === 0 || types.includes("object");
};

const TYPES: ReadonlySet<string> = new Set(["string", "number", "integer", "boolean", "object", "array", "null"]);
/** Common misnomers for the types of JSON Schema. */
const ALIASES: Readonly<Record<string, string>> = {
  str: "string",
  text: "string",
  int: "integer",
  float: "number",
  double: "number",
  bool: "boolean",
  dict: "object",
  map: "object",
  list: "array",
};

const listTypes = (type: unknown): string[] => {
  const all = (Array.isArray(type) ? type : [type]).filter((one): one is string => typeof one === "string");
  const known = all.map((one) => ALIASES[one.toLowerCase()] ?? one.toLowerCase()).filter((one) => TYPES.has(one));
  return [...new Set(known)];
};

const NUMBERS = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"] as const;
const COUNTS = ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"] as const;
const COMBINATORS = ["anyOf", "oneOf", "allOf"] as const;

/** Maximum number of schemas in one tool; further ones accept everything. */
const MAX_NODES = 3_000;
/** How often a recursive schema is expanded. */
const MAX_UNROLLED = 2;

class Repair {
  readonly #document: Members;
  readonly renames = new Renames();
  #nodes = 0;

  constructor(document: Members) {
    this.#document = document;
  }

  /** Returns the schema with `$ref` resolved; references that cannot be found are dropped. */
  resolveReferences(schema: Members, stack: string[] = []): Members {
    let found: Members = schema;
    for (let hops = 0; typeof found.$ref === "string" && hops < 10; hops += 1) {
      const { $ref, ...siblings } = found;
      const target = stack.filter((one) => one === $ref).length < MAX_UNROLLED ? this.#find($ref as string) : undefined;
      stack.push($ref as string);
      found = { ...(isMembers(target) ? target : {}), ...siblings };
    }
    const { $ref: _, ...rest } = found;
    return rest;
  }

  #find(pointer: string): unknown {
    if (!pointer.startsWith("#")) return undefined;
    const names = pointer.split("/").slice(1).map(unescapePointer);
    let at: unknown = this.#document;
    for (const name of names) {
      if (typeof at !== "object" || at === null || !Object.hasOwn(at, name)) return undefined;
      at = (at as Members)[name];
    }
    return at;
  }

  /** Returns the top level: an object without combinators, which model servers refuse there. */
  root(schema: Members): { readonly node: Node; readonly note: string } {
    const notes: string[] = [];
    const flattened = this.#flatten({ ...schema, type: "object" }, notes);
    return { node: this.#repairNode(flattened, []), note: notes.join(" ") };
  }

  /** Merges the properties of all branches into one object; `notes` says which of them belong together. */
  #flatten(schema: Members, notes: string[], depth = 0): Members {
    const { anyOf, oneOf, allOf, not: _, enum: __, const: ___, if: ____, ...rest } = schema;
    let created: Members = rest;
    const branches = (value: unknown): Members[] =>
      Array.isArray(value) && depth < 5
        ? value.filter(isMembers).map((one) => this.#flatten(this.resolveReferences(one), notes, depth + 1))
        : [];
    for (const branch of branches(allOf))
      created = mergeProperties(created, branch, [...listNames(created), ...listNames(branch)]);
    for (const all of [branches(anyOf), branches(oneOf)]) {
      if (all.length === 0) continue;
      const shared = listNames(all[0] ?? {}).filter((name) => all.every((one) => listNames(one).includes(name)));
      const own = all.map((one) => listNames(one).filter((name) => !shared.includes(name)));
      const needed = [...listNames(created), ...shared];
      for (const branch of all) created = mergeProperties(created, branch, needed);
      const choices = own.filter((names) => names.length > 0).map((names) => names.join(" and "));
      if (choices.length > 0) notes.push(`Give ${[...new Set(choices)].join(", or ")}.`);
    }
    return created;
  }

  #repairNode(value: unknown, stack: readonly string[]): Node {
    this.#nodes += 1;
    if (!isMembers(value) || this.#nodes > MAX_NODES) return {};
    const inside = [...stack];
    const schema = this.resolveReferences(value, inside);
    const created: Node = {};
    for (const name of ["description", "title", "format"])
      if (typeof schema[name] === "string") created[name] = schema[name];
    if (schema.default !== undefined && schema.default !== null) created.default = schema.default;
    if (schema.const !== undefined && schema.const !== null) created.const = schema.const;
    if (Array.isArray(schema.enum) && schema.enum.length > 0) created.enum = [...new Set(schema.enum)];
    this.#describeLimits(schema, created);
    const types = listTypes(schema.type);
    if (isMembers(schema.properties) && types.length === 0) types.push("object");
    if (types.length > 0) created.type = types.length === 1 ? types[0] : types;
    for (const name of COMBINATORS) {
      const all = Array.isArray(schema[name]) ? schema[name] : [];
      if (all.length > 0) created[name] = all.map((one) => this.#repairNode(one, inside));
    }
    if (types.includes("object")) this.#repairObject(schema, created, inside);
    if (types.includes("array") || schema.items !== undefined) created.items = this.#repairItems(schema, inside);
    toTypeBranches(created);
    return created;
  }

  #describeLimits(schema: Members, created: Node): void {
    for (const name of NUMBERS) if (typeof schema[name] === "number") created[name] = schema[name];
    // Older drafts use a flag for the adjacent limit.
    for (const [flag, limit] of [
      ["exclusiveMinimum", "minimum"],
      ["exclusiveMaximum", "maximum"],
    ] as const) {
      if (schema[flag] !== true || typeof created[limit] !== "number") continue;
      created[flag] = created[limit];
      delete created[limit];
    }
    for (const name of COUNTS)
      if (Number.isSafeInteger(schema[name]) && (schema[name] as number) >= 0) created[name] = schema[name];
    if (typeof schema.uniqueItems === "boolean") created.uniqueItems = schema.uniqueItems;
    if (typeof schema.pattern === "string" && isPortablePattern(schema.pattern)) created.pattern = schema.pattern;
  }

  #repairObject(schema: Members, created: Node, stack: readonly string[]): void {
    const given = isMembers(schema.properties) ? Object.entries(schema.properties) : [];
    const names = chooseNames(given.map(([name]) => name));
    created.properties = Object.fromEntries(
      given.map(([name, one]) => [names.get(name) ?? name, this.#repairNode(one, stack)]),
    );
    this.renames.add(created, names);
    const required = listNames(schema).flatMap((name) => names.get(name) ?? []);
    if (required.length > 0) created.required = [...new Set(required)];
    const { additionalProperties: more, patternProperties } = schema;
    if (typeof more === "boolean" && (more || !isMembers(patternProperties))) created.additionalProperties = more;
    if (isMembers(more)) created.additionalProperties = this.#repairNode(more, stack);
  }

  /** Returns one schema for all items: model servers do not support tuples. */
  #repairItems({ items, prefixItems }: Members, stack: readonly string[]): Node {
    const elements = [prefixItems, items].flatMap((one) => (Array.isArray(one) ? one : []));
    const all = [...elements, ...(isMembers(items) ? [items] : [])].map((one) => this.#repairNode(one, stack));
    const distinct = [...new Map(all.map((one) => [JSON.stringify(one), one])).values()];
    return distinct.length > 1 ? { anyOf: distinct } : (distinct[0] ?? {});
  }
}

/** Moonshot requires the type in the branches, not next to them. */
const toTypeBranches = (created: Node): void => {
  const { type, anyOf, oneOf, properties, items } = created;
  const branches = [anyOf, oneOf].flatMap((all) => (Array.isArray(all) ? (all as Node[]) : []));
  if (type === undefined || branches.length === 0 || properties !== undefined || items !== undefined) return;
  for (const branch of branches) branch.type ??= type;
  delete created.type;
};

const unescapePointer = (name: string): string => {
  const plain = name.replaceAll("~1", "/").replaceAll("~0", "~");
  try {
    return decodeURIComponent(plain);
  } catch {
    return plain;
  }
};

/** llama.cpp converts patterns to a grammar: it refuses assertions, and patterns without both anchors. */
const isPortablePattern = (pattern: string): boolean => {
  if (!(pattern.startsWith("^") && pattern.endsWith("$")) || /\(\?|\\[bBpP]/.test(pattern)) return false;
  try {
    new RegExp(pattern, "u");
    return true;
  } catch {
    return false;
  }
};

const listNames = ({ required }: Members): string[] =>
  Array.isArray(required) ? required.filter((name): name is string => typeof name === "string") : [];

/** Merges the properties of both; a property in both accepts either schema. */
const mergeProperties = (base: Members, branch: Members, required: readonly string[]): Members => {
  const properties: Record<string, unknown> = { ...(isMembers(base.properties) ? base.properties : {}) };
  for (const [name, one] of Object.entries(isMembers(branch.properties) ? branch.properties : {})) {
    const known = Object.hasOwn(properties, name) ? properties[name] : undefined;
    const isSame = known === undefined || JSON.stringify(known) === JSON.stringify(one);
    properties[name] = isSame ? one : { anyOf: [known, one] };
  }
  const isClosed = base.additionalProperties === false && isMembers(branch.properties);
  return { ...base, properties, required: [...new Set(required)], ...(isClosed ? { additionalProperties: true } : {}) };
};

const PROPERTY = /^[a-zA-Z0-9_.-]{1,64}$/;

/** Returns names that receivers accept, by the tool's own names. */
const chooseNames = (names: readonly string[]): ReadonlyMap<string, string> => {
  const taken = new Set(names.filter((name) => PROPERTY.test(name)));
  return new Map(
    names.map((name) => {
      if (PROPERTY.test(name)) return [name, name];
      const plain = trimEnds(name.replace(/[^a-zA-Z0-9_.-]+/g, "_"), "_");
      const isFree = PROPERTY.test(plain) && !taken.has(plain);
      const created = isFree ? plain : `${plain.slice(0, 57) || "field"}_${sha256(name).slice(0, 6)}`;
      taken.add(created);
      return [name, created];
    }),
  );
};

type Direction = "fromModel" | "toModel";

/** Properties that are renamed in the request, by schema. */
class Renames {
  readonly #byNode = new Map<object, ReadonlyMap<string, string>>();

  get isEmpty(): boolean {
    return this.#byNode.size === 0;
  }

  add(node: object, names: ReadonlyMap<string, string>): void {
    const renamed = [...names].filter(([own, created]) => own !== created);
    if (renamed.length > 0) this.#byNode.set(node, new Map(renamed));
  }

  apply(node: unknown, value: unknown, direction: Direction): unknown {
    if (!isMembers(node)) return value;
    if (Array.isArray(value)) {
      const items = [...listAlternatives(node)].find((one) => one.items !== undefined)?.items;
      return value.map((one) => this.apply(items, one, direction));
    }
    if (!isMembers(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, one]) => {
        const [other, child] = this.#renameMember(node, name, direction);
        return [other, this.apply(child, one, direction)];
      }),
    );
  }

  /** Returns the member's name on the other side, and its schema. */
  #renameMember(node: Members, name: string, direction: Direction): [string, unknown] {
    for (const one of listAlternatives(node)) {
      const properties = isMembers(one.properties) ? one.properties : {};
      const renamed = [...(this.#byNode.get(one) ?? [])].find((pair) => pair[direction === "toModel" ? 0 : 1] === name);
      if (renamed) return [renamed[direction === "toModel" ? 1 : 0], properties[renamed[1]]];
      if (Object.hasOwn(properties, name)) return [name, properties[name]];
    }
    return [name, node.additionalProperties];
  }
}

/** Yields the schema and the schemas that it combines. */
function* listAlternatives(node: Members, depth = 0): Iterable<Members> {
  yield node;
  if (depth > 4) return;
  for (const name of COMBINATORS) {
    for (const one of Array.isArray(node[name]) ? node[name] : [])
      if (isMembers(one)) yield* listAlternatives(one, depth + 1);
  }
}
