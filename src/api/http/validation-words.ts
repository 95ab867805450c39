// Explains validation errors to people. The only module that reads the validator's reports (rule HT-42). A schema can define its own
// message with `error`; otherwise the message follows from the violated keyword.
import { ValueErrorType } from "@sinclair/typebox/errors";
import type { Validation } from "#base/errors.ts";

type Schema = {
  readonly [keyword: string]: unknown;
  readonly error?: unknown;
  readonly format?: string;
  readonly type?: string;
  readonly const?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly anyOf?: readonly Schema[];
};

/** One violation reported by the validator. */
export type Violation = {
  /** Path of the value, such as `/content/0/text`. */
  readonly path: string;
  readonly type?: ValueErrorType;
  readonly value?: unknown;
  readonly schema?: Schema;
  readonly summary?: string;
  /** For a union: the violations of each of its members. */
  readonly errors?: readonly Iterable<Violation>[];
};

/** Enough to correct a request; a list can have a hundred thousand invalid entries. */
const MAX_PROBLEMS = 64;

/** Returns the first invalid fields, each once, with its first violation. */
export const listProblems = (violations: Iterable<Violation>): Validation[] => {
  const problems = new Map<string, string>();
  for (const violation of violations) {
    if (problems.size >= MAX_PROBLEMS) break;
    for (const { field, detail } of toProblems(violation)) if (!problems.has(field)) problems.set(field, detail);
  }
  return [...problems].map(([field, detail]) => ({ field, detail }));
};

/**
 * Returns whether the path ends with a word instead of an ID: the caller wanted a route that does not exist, such as `/chats/usage` (rule
 * HT-14).
 */
export const isWord = ({ value, schema }: Violation): boolean =>
  schema?.format === "uuid" && typeof value === "string" && /^[a-z]+(?:[-_][a-z]+)*$/.test(value);

/** If a value can only match one member of a union, reports that member's violations. */
const toProblems = (violation: Violation): Validation[] => {
  const intended = typeof violation.schema?.error === "string" ? undefined : findIntendedMember(violation);
  return intended
    ? listProblems(intended)
    : [{ field: violation.path.slice(1).replaceAll("/", "."), detail: describe(violation) }];
};

const findIntendedMember = ({ schema, value, errors = [] }: Violation): Iterable<Violation> | undefined => {
  const members = (schema?.anyOf ?? []).map((member, i) => ({ member, errors: errors[i] }));
  const matching = members.filter(
    ({ member, errors: memberErrors }) => memberErrors && member.type === getType(value) && isIntended(member, value),
  );
  const [only, ...others] = matching;
  return only && others.length === 0 && ["array", "object"].includes(String(only.member.type))
    ? only.errors
    : undefined;
};

/** Returns whether an object has the constant that distinguishes this union member. */
const isIntended = ({ properties = {} }: Schema, value: unknown): boolean =>
  Object.entries(properties as Record<string, Schema>).every(
    ([name, { const: constant }]) => constant === undefined || (value as Record<string, unknown>)[name] === constant,
  );

const getType = (value: unknown): string => {
  if (Array.isArray(value)) return "array";
  return value === null ? "null" : typeof value;
};

const TYPE_NOUNS: Readonly<Record<string, string>> = {
  string: "a text",
  array: "a list",
  object: "an object",
  boolean: "true or false",
  null: "null",
};

/** Describes the allowed numbers, with both bounds if both exist. */
const describeNumber = ({ type, minimum, maximum }: Schema): string => {
  const kind = type === "integer" ? "a whole number" : "a number";
  if (minimum !== undefined && maximum !== undefined) return `${kind} from ${minimum} to ${maximum}`;
  if (minimum !== undefined) return `${kind}, at least ${minimum}`;
  return maximum === undefined ? kind : `${kind}, at most ${maximum}`;
};

/** Returns what is wrong with the length of a text or list; undefined when it is valid. */
const findLengthProblem = (schema: Schema, value: unknown): string | undefined => {
  const [min, max, unit] = Array.isArray(value)
    ? ([schema.minItems, schema.maxItems, "entries"] as const)
    : ([schema.minLength, schema.maxLength, "characters"] as const);
  if (typeof value !== "string" && !Array.isArray(value)) return undefined;
  const formatCount = (count: number) =>
    count === 1 ? `1 ${unit === "entries" ? "entry" : "character"}` : `${count} ${unit}`;
  if (max !== undefined && value.length > max) return `must have at most ${formatCount(max)}`;
  return min !== undefined && value.length < min ? `must have at least ${formatCount(min)}` : undefined;
};

const FORMAT_PROBLEMS: Readonly<Record<string, string>> = {
  uuid: "must be a UUID",
  "date-time": "must be a time as in RFC 3339, such as 2030-01-31T09:30:00Z",
};

const PLAIN_PROBLEMS: ReadonlyMap<ValueErrorType | undefined, string> = new Map([
  [ValueErrorType.ObjectRequiredProperty, "is required"],
  [ValueErrorType.ObjectAdditionalProperties, "is not known here"],
  [ValueErrorType.ArrayUniqueItems, "must not have the same entry twice"],
  [ValueErrorType.ObjectMinProperties, "has too few members"],
  [ValueErrorType.ObjectMaxProperties, "has too many members"],
]);

const describe = ({ type, schema = {}, value }: Violation): string => {
  const length = findLengthProblem(schema, value);
  if (length !== undefined && (schema.pattern !== undefined || typeof schema.error !== "string")) return length;
  const fixedProblem = PLAIN_PROBLEMS.get(type);
  if (fixedProblem !== undefined) return fixedProblem;
  if (typeof schema.error === "string") return schema.error;
  if (type === ValueErrorType.StringPattern) return "has characters or a form that are not allowed here";
  return schema.format !== undefined && schema.format in FORMAT_PROBLEMS
    ? (FORMAT_PROBLEMS[schema.format] as string)
    : `must be ${describeType(schema)}`;
};

/** Returns a noun for values of this schema. */
const describeType = (schema: Schema): string => {
  const members = schema.anyOf ?? [schema];
  const constants = members.filter((one) => "const" in one).map((one) => String(one.const));
  // A number in a query can arrive as text, so its schema is a union; only the number is described.
  const isNumber = members.some(({ type }) => type === "integer" || type === "number");
  const others = members.filter(
    (one) => !("const" in one) && !(isNumber && isNumberText(one)) && !isFlagText(one, members),
  );
  const kinds = others.map((one) => getKind(one));
  const constantList = constants.length > 1 ? `one of ${constants.join(", ")}` : constants[0];
  return [...(constantList === undefined ? [] : [constantList]), ...new Set(kinds)].join(", or ") || "of another form";
};

const getKind = (schema: Schema): string => {
  if (schema.type === "integer" || schema.type === "number") return describeNumber(schema);
  if (schema.format === "uuid") return "a UUID";
  return TYPE_NOUNS[schema.type ?? ""] ?? "of another form";
};

const isNumberText = ({ type, format }: Schema): boolean =>
  type === "string" && (format === "integer" || format === "numeric");

const isFlagText = ({ type, format }: Schema, members: readonly Schema[]): boolean =>
  type === "string" && format === "boolean" && members.some((one) => one.type === "boolean");
