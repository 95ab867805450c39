// Handles a response that does not match its own schema. Stored data must stay readable: the response is sent without the unknown members,
// and the mismatch is logged by operation, path and field (never with a value, which may be private), counted for Prometheus, and fails the
// tests (test/support/server.ts) (rule HT-25).
import type { TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { ValidationError } from "elysia";
import { log } from "#base/log.ts";
import { COMMON_HEADERS } from "#base/network/common-headers.ts";

/** Returns whether a handler returned something its response schema does not allow. */
export const isMismatch = (error: unknown): error is ValidationError =>
  error instanceof ValidationError && error.type === "response";

/** One mismatch: the route, such as `/api/v2/audit`, and the fields, such as `audit_logs.3.resource_id`. */
export type Mismatch = { readonly method: string; readonly route: string; readonly fields: readonly string[] };

/** Maximum fields named in one log line. */
const MAX_FIELDS = 8;
/** Maximum mismatches kept for inspection; the count continues. */
const MAX_KEPT = 100;

export class ResponseMismatches {
  #count = 0;
  readonly #kept: Mismatch[] = [];

  /** Returns the number of mismatches since the start. */
  get count(): number {
    return this.#count;
  }

  /** Returns the first mismatches. */
  get kept(): readonly Mismatch[] {
    return this.#kept;
  }

  note(mismatch: Mismatch): void {
    this.#count += 1;
    if (this.#kept.length < MAX_KEPT) this.#kept.push(mismatch);
    log("http").error("an answer of {method} {route} does not fit its schema", { ...mismatch });
  }

  /** Returns the response for a handler's result that does not match its schema. */
  answer(error: ValidationError, { request, route, status }: MismatchedRequest): Response {
    this.note({ method: request.method, route, fields: listFields(error) });
    const { schema } = error.validator as { schema: TSchema };
    const headers = { "content-type": "application/json", ...COMMON_HEADERS };
    return new Response(JSON.stringify(prune(schema, error.value) ?? null), { status, headers });
  }
}

type MismatchedRequest = { request: Request; route: string; status: number };

/** Returns the mismatched fields with what was expected, never the actual values. */
const listFields = (error: ValidationError): string[] => {
  const { Errors } = error.validator as { Errors(value: unknown): Iterable<{ path: string; message: string }> };
  return listMismatchedFields(Errors.call(error.validator, error.value));
};

/** Returns the first few mismatched fields with what was expected. */
export const listMismatchedFields = (errors: Iterable<{ path: string; message: string }>): string[] => {
  const fields = new Set<string>();
  for (const { path, message } of errors) {
    const field = path.slice(1, 200).replaceAll("/", ".");
    fields.add(`${field === "" ? "(all)" : field}: ${message.slice(0, 100)}`);
    if (fields.size === MAX_FIELDS) break;
  }
  return [...fields];
};

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * Returns the value without members that the schema does not name, even if it still doesn't match: a database row can have columns that
 * must stay private.
 */
export const prune = (schema: TSchema, value: unknown): unknown => {
  if (Array.isArray(schema.anyOf)) return pruneUnion(schema.anyOf as TSchema[], value);
  if (Array.isArray(value)) {
    return isObject(schema.items)
      ? value.map((item) => prune(schema.items as TSchema, item))
      : schema.type
        ? []
        : value;
  }
  if (!isObject(value)) return value;
  // Any value is allowed here.
  if (schema.type === undefined) return value;
  const properties = (schema.properties ?? {}) as Record<string, TSchema>;
  const patternSchema = Object.values((schema.patternProperties ?? {}) as Record<string, TSchema>)[0];
  const otherSchema = isObject(schema.additionalProperties) ? (schema.additionalProperties as TSchema) : patternSchema;
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, member]) => {
      const memberSchema = Object.hasOwn(properties, name) ? properties[name] : otherSchema;
      return memberSchema ? [[name, prune(memberSchema, member)] as const] : [];
    }),
  );
};

/** Prunes by the union member that matches, or else by the one that knows most of its members. */
const pruneUnion = (members: readonly TSchema[], value: unknown): unknown => {
  const matching = members.find((member) => Value.Check(member, value));
  if (matching) return prune(matching, value);
  if (!isObject(value) && !Array.isArray(value)) return value;
  const type = Array.isArray(value) ? "array" : "object";
  const countKnown = ({ properties = {} }: TSchema) => Object.keys(properties).filter((name) => name in value).length;
  const closest = members.filter((member) => member.type === type).sort((a, b) => countKnown(b) - countKnown(a))[0];
  return closest ? prune(closest, value) : null;
};
