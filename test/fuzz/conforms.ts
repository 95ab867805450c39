// Checks whether a value matches a schema of the OpenAPI document, as a generated client would.
import type { Schema } from "./operations.ts";

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const DATE_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/i;

/** Returns the first mismatch and its reason, or undefined if the value conforms. */
export const findMismatch = (schema: Schema, value: unknown, path = "it"): string | undefined => {
  if (value === null && (schema.nullable || allowsAnything(schema))) return undefined;
  if (schema.enum) return schema.enum.includes(value) ? undefined : `${path} is not one of ${schema.enum}`;
  if (schema.anyOf) {
    const mismatches = schema.anyOf.map((alternative) => findMismatch(alternative, value, path));
    return mismatches.includes(undefined) ? undefined : mismatches[0];
  }
  switch (schema.type) {
    case "string":
      return typeof value === "string" ? findTextMismatch(schema, value, path) : `${path} is not a string`;
    case "integer":
    case "number":
      return findNumberMismatch(schema, value, path);
    case "boolean":
      return typeof value === "boolean" ? undefined : `${path} is not a boolean`;
    case "array":
      return Array.isArray(value) ? findListMismatch(schema, value, path) : `${path} is not a list`;
    case "object":
      return isObject(value) ? findObjectMismatch(schema, value, path) : `${path} is not an object`;
    default:
      return undefined;
  }
};

const allowsAnything = ({ type, anyOf, enum: values }: Schema): boolean =>
  type === undefined && anyOf === undefined && values === undefined;

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const findTextMismatch = (schema: Schema, value: string, path: string): string | undefined => {
  const { format, pattern, minLength = 0, maxLength = Number.POSITIVE_INFINITY } = schema;
  if (value.length < minLength || value.length > maxLength) return `${path} has ${value.length} characters`;
  if (pattern !== undefined && !new RegExp(pattern).test(value)) return `${path} does not match ${pattern}`;
  if (format === "uuid" && !UUID.test(value)) return `${path} is not a UUID`;
  if (format === "date-time" && !DATE_TIME.test(value)) return `${path} is not a time`;
  return undefined;
};

const findNumberMismatch = ({ type, minimum, maximum }: Schema, value: unknown, path: string): string | undefined => {
  if (typeof value !== "number" || !Number.isFinite(value)) return `${path} is not a number`;
  if (type === "integer" && !Number.isInteger(value)) return `${path} is not a whole number`;
  return value < (minimum ?? value) || value > (maximum ?? value) ? `${path} is out of bounds` : undefined;
};

const findListMismatch = ({ items = {}, minItems, maxItems }: Schema, value: unknown[], path: string) => {
  if (value.length < (minItems ?? 0) || value.length > (maxItems ?? value.length))
    return `${path} has ${value.length} items`;
  for (const [i, item] of value.entries()) {
    const mismatch = findMismatch(items, item, `${path}.${i}`);
    if (mismatch) return mismatch;
  }
  return undefined;
};

const findObjectMismatch = (schema: Schema, value: Record<string, unknown>, path: string): string | undefined => {
  const { properties = {}, required = [], additionalProperties: additional } = schema;
  const missing = required.find((name) => !Object.hasOwn(value, name));
  if (missing !== undefined) return `${path}.${missing} is missing`;
  for (const [name, member] of Object.entries(value)) {
    const memberSchema = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (!memberSchema && additional === false) return `${path}.${name} is not allowed`;
    const schemaOfMember = memberSchema ?? (isObject(additional) ? (additional as Schema) : undefined);
    const mismatch = schemaOfMember && findMismatch(schemaOfMember, member, `${path}.${name}`);
    if (mismatch) return mismatch;
  }
  return undefined;
};
