// Answers that a handler has made itself, as text that is JSON already, pass the router without a look at their schema: they are made
// often, and kept. The servers of tests look at them here, so that they say nothing else than the document does (rule HT-25).
import { Value } from "@sinclair/typebox/value";
import { getPath } from "../errors.ts";
import type { Operations } from "../operations.ts";
import { listSchemas } from "./answer-validators.ts";
import { mismatchedFields, prune, type ResponseMismatches } from "./response-mismatch.ts";

/** What the router makes of an object names no charset: it has looked at that one. */
const MADE_BY_HAND = /^application\/json; ?charset/i;

/** Members of a list that are looked at from either end: a list of hundreds takes longer to look at than to make, and they are alike. */
const LOOKED_AT = 12;

const shortened = (value: unknown): unknown => {
  if (typeof value !== "object" || value === null) return value;
  if (!Array.isArray(value))
    return Object.fromEntries(Object.entries(value).map(([name, of]) => [name, shortened(of)]));
  const few = value.length > 2 * LOOKED_AT ? [...value.slice(0, LOOKED_AT), ...value.slice(-LOOKED_AT)] : value;
  return few.map(shortened);
};

/** Notes what does not fit. Reads a copy: the answer stays as it is. */
export const checkAnswer = async (
  request: Request,
  response: Response,
  { operations, mismatches }: { readonly operations: Operations; readonly mismatches: ResponseMismatches },
): Promise<void> => {
  if (response.status >= 300 || !MADE_BY_HAND.test(response.headers.get("content-type") ?? "")) return;
  const operation = operations.find(request.method, getPath(request.url));
  const schema = operation && listSchemas(operation.hooks)[response.status];
  if (!operation || !schema) return;
  const value = shortened(await response.clone().json());
  const fields = Value.Check(schema, value)
    ? unknownMembers(prune(schema, value), value)
    : mismatchedFields(Value.Errors(schema, value));
  if (fields.length > 0) mismatches.note({ method: request.method, route: operation.route, fields });
};

/** Where the value has members that its schema does not know; `known` is the value without them. */
const unknownMembers = (known: unknown, value: unknown, path = ""): string[] => {
  if (typeof value !== "object" || value === null || typeof known !== "object" || known === null) return [];
  return Object.entries(value).flatMap(([name, member]) => {
    const here = path === "" ? name : `${path}.${name}`;
    if (!(name in known)) return [`${here}: not in the schema`];
    return unknownMembers((known as Record<string, unknown>)[name], member, here);
  });
};
