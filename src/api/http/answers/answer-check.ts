// Checks responses that a handler has serialized itself. They bypass the router's schema check because they are frequent and cached. Test
// servers check them here, so that they match the document (rule HT-25).
import { Value } from "@sinclair/typebox/value";
import { getPath } from "../errors.ts";
import type { Operations } from "../operations.ts";
import { listSchemas } from "./answer-validators.ts";
import { listMismatchedFields, prune, type ResponseMismatches } from "./response-mismatch.ts";

/** The router serializes objects without a charset, so this matches only handmade responses. */
const SERIALIZED_TYPE = /^application\/json; ?charset/i;

/** List items checked from each end: checking hundreds takes longer than creating them, and they are alike. */
const CHECKED_EDGE_ITEMS = 12;

const shorten = (value: unknown): unknown => {
  if (typeof value !== "object" || value === null) return value;
  if (!Array.isArray(value))
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, shorten(member)]));
  const edgeItems =
    value.length > 2 * CHECKED_EDGE_ITEMS
      ? [...value.slice(0, CHECKED_EDGE_ITEMS), ...value.slice(-CHECKED_EDGE_ITEMS)]
      : value;
  return edgeItems.map(shorten);
};

/** Records mismatches. Reads a copy and leaves the response unchanged. */
export const checkAnswer = async (
  request: Request,
  response: Response,
  { operations, mismatches }: { readonly operations: Operations; readonly mismatches: ResponseMismatches },
): Promise<void> => {
  if (response.status >= 300 || !SERIALIZED_TYPE.test(response.headers.get("content-type") ?? "")) return;
  const operation = operations.find(request.method, getPath(request.url));
  const schema = operation && listSchemas(operation.hooks)[response.status];
  if (!operation || !schema) return;
  const value = shorten(await response.clone().json());
  const fields = Value.Check(schema, value)
    ? listUnknownMembers(prune(schema, value), value)
    : listMismatchedFields(Value.Errors(schema, value));
  if (fields.length > 0) mismatches.note({ method: request.method, route: operation.route, fields });
};

/** Returns the paths of members missing from the schema; `pruned` is the value without them. */
const listUnknownMembers = (pruned: unknown, value: unknown, path = ""): string[] => {
  if (typeof value !== "object" || value === null || typeof pruned !== "object" || pruned === null) return [];
  return Object.entries(value).flatMap(([name, member]) => {
    const memberPath = path === "" ? name : `${path}.${name}`;
    if (!(name in pruned)) return [`${memberPath}: not in the schema`];
    return listUnknownMembers((pruned as Record<string, unknown>)[name], member, memberPath);
  });
};
