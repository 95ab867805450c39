// Repairs arguments that weaker models get almost right: a number instead of text, arrays and objects as JSON text, unknown members. Runs
// once, when the call arrives, so that approvals show what will run, and is reported to the model with the result. If the intent is not
// clear, nothing is changed and the call is refused (rule TO-7). Pure; used by turns.

import { tryParseJson } from "#base/json/read.ts";
import { addNote, formatNote } from "./call-notes.ts";
import type { ModelEvent, ToolDefinition } from "./model.ts";

type Schema = {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: unknown;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
};
type Members = Record<string, unknown>;

const MAX_DEPTH = 8;

/** Returns the event with its arguments repaired, and a note if anything was changed. */
export const repairCall = (event: ModelEvent, tools: readonly ToolDefinition[]): ModelEvent => {
  if (event.type !== "tool_call" || event.provider_executed) return event;
  const schema = tools.find(({ name }) => name === event.name)?.input_schema;
  const { args, notes } = repairArgs(schema, event.args);
  return notes.length === 0 ? event : { ...event, args, metadata: addNote(event.metadata, formatNote(notes)) };
};

/** Returns arguments that fit this JSON schema better, and a sentence for each change. */
export const repairArgs = (
  schema: unknown,
  args: unknown,
): { readonly args: unknown; readonly notes: readonly string[] } => {
  const notes: string[] = [];
  if (typeof schema !== "object" || schema === null || isCutOff(schema as Schema, args)) return { args, notes };
  const repaired = repairValue(schema as Schema, args, "", notes, 0);
  return notes.length === 0 ? { args, notes } : { args: repaired, notes };
};

/** True for the form in which arguments.ts returns invalid JSON. */
const isCutOff = ({ properties = {} }: Schema, args: unknown): boolean =>
  isObject(args) && Object.keys(args).join() === "input" && !("input" in properties);

const isObject = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const listTypes = ({ type }: Schema): readonly string[] =>
  type === undefined ? [] : typeof type === "string" ? [type] : type;

const hasType = (type: string, value: unknown): boolean => {
  switch (type) {
    case "integer":
      return Number.isInteger(value);
    case "array":
      return Array.isArray(value);
    case "object":
      return isObject(value);
    case "null":
      return value === null;
    default:
      return typeof value === type;
  }
};

const repairValue = (schema: Schema, value: unknown, path: string, notes: string[], depth: number): unknown => {
  if (depth > MAX_DEPTH) return value;
  if (schema.anyOf) return repairForAlternative(schema.anyOf, value, path, notes, depth);
  const types = listTypes(schema);
  const hasRightType = types.length === 0 || types.some((type) => hasType(type, value));
  const repaired = hasRightType
    ? value
    : types.map((type) => convertTo(type, schema, value)).find((one) => one !== undefined);
  if (repaired === undefined) return value;
  if (!hasRightType)
    notes.push(`${path === "" ? "The arguments were" : `"${path}" was`} taken as ${getTypeName(repaired)}.`);
  if (Array.isArray(repaired) && schema.items) {
    const { items } = schema;
    return repaired.map((one, at) => repairValue(items, one, `${path}.${at}`, notes, depth + 1));
  }
  return isObject(repaired) && schema.properties ? repairMembers(schema, repaired, path, notes, depth) : repaired;
};

/** Returns the value unchanged if it fits one of the schemas; otherwise repaired for the only one that it can be made to fit. */
const repairForAlternative = (
  all: readonly Schema[],
  value: unknown,
  path: string,
  notes: string[],
  depth: number,
): unknown => {
  const fitting = all.filter((one) => listTypes(one).some((type) => hasType(type, value)));
  const [candidate] =
    fitting.length > 0
      ? fitting
      : all.filter((one) => listTypes(one).some((type) => convertTo(type, one, value) !== undefined));
  return candidate && (fitting.length === 1 || fitting.length === 0)
    ? repairValue(candidate, value, path, notes, depth + 1)
    : value;
};

/** Converts the value to this type; undefined if the conversion is not clear. */
const convertTo = (type: string, { items }: Schema, value: unknown): unknown => {
  const text = typeof value === "string" ? value.trim() : undefined;
  switch (type) {
    case "string":
      return typeof value === "number" || typeof value === "boolean" ? String(value) : undefined;
    case "integer":
      return text !== undefined && /^-?\d{1,15}$/.test(text) ? Number(text) : undefined;
    case "number":
      return text !== undefined && /^-?\d{1,15}(\.\d{1,15})?$/.test(text) ? Number(text) : undefined;
    case "boolean":
      return text !== undefined && /^(true|false)$/i.test(text) ? text.toLowerCase() === "true" : undefined;
    case "object":
    case "array": {
      const nested = text === undefined ? undefined : parseNested(text);
      if (nested !== undefined && hasType(type, nested)) return nested;
      const isSingleItem =
        type === "array" && items !== undefined && listTypes(items).some((one) => hasType(one, value));
      return isSingleItem ? [value] : undefined;
    }
    default:
      return undefined;
  }
};

const parseNested = (text: string): unknown => (/^[[{]/.test(text) ? tryParseJson(text) : undefined);

const repairMembers = (schema: Schema, value: Members, path: string, notes: string[], depth: number): Members => {
  const { properties = {}, required = [], additionalProperties } = schema;
  const toPath = (name: string): string => (path === "" ? name : `${path}.${name}`);
  // A required member is missing: an unknown member may be a misspelling of it.
  const isComplete = required.every((name) => name in value);
  const repaired: Members = {};
  for (const [name, one] of Object.entries(value)) {
    const known = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (known === undefined) {
      if (additionalProperties === false && isComplete && !isMisspelling(name, properties))
        notes.push(`"${toPath(name)}" is unknown and was ignored.`);
      else repaired[name] = one;
    } else if (one === null && !required.includes(name) && !acceptsNull(known)) {
      notes.push(`"${toPath(name)}" was null and was left out.`);
    } else repaired[name] = repairValue(known, one, toPath(name), notes, depth + 1);
  }
  return repaired;
};

/** True for a known name in another spelling; two names for one member are ambiguous. */
const isMisspelling = (name: string, properties: Readonly<Record<string, Schema>>): boolean =>
  Object.keys(properties).some((known) => normalizeName(known) === normalizeName(name));

const normalizeName = (name: string): string => name.toLowerCase().replace(/[^a-z0-9]/g, "");

const acceptsNull = (schema: Schema): boolean =>
  listTypes(schema).includes("null") || listTypes(schema).length === 0 || (schema.anyOf ?? []).some(acceptsNull);

const getTypeName = (value: unknown): string => {
  if (Array.isArray(value)) return "a list";
  return typeof value === "object"
    ? "an object"
    : typeof value === "string"
      ? "text"
      : `the ${typeof value} ${String(value)}`;
};
