// Sends one request of the fuzzer and checks its response, based only on the OpenAPI document (rules FZ-1, FZ-4).
import type { Client } from "#src/client.ts";
import { findMismatch } from "./conforms.ts";
import { fillPath, type Operation } from "./operations.ts";

export type SentRequest = {
  path: Record<string, string>;
  query: Record<string, string | undefined>;
  body: { json: unknown } | { raw: string; type: string } | undefined;
};

const RESPONSE_TIMEOUT_MS = 5_000;

/** Statuses that the HTTP server may return for any request. */
const EDGE_STATUSES = new Set([429]);

/** Sends the request and returns the fault of its response; undefined if it has none. */
export const findFault = async (
  client: Client,
  operation: Operation,
  sent: SentRequest,
  reached: Set<string>,
): Promise<string | undefined> => {
  const startedAt = performance.now();
  const body = sent.body === undefined ? undefined : "raw" in sent.body ? sent.body.raw : sent.body.json;
  const headers: Record<string, string> = sent.body && "raw" in sent.body ? { "content-type": sent.body.type } : {};
  const response = await client.fetch(operation.method, fillPath(operation, sent.path, sent.query), body, { headers });
  const type = response.headers.get("content-type") ?? "";
  const { status } = response;
  if (type.startsWith("text/event-stream")) {
    await response.body?.cancel();
    return findTypeFault(operation, status, type);
  }
  const text = await response.text();
  const ms = performance.now() - startedAt;
  if (status < 300) reached.add(operation.name);
  if (status >= 500) return `returned ${status} ${text.slice(0, 500)}`;
  if (ms > RESPONSE_TIMEOUT_MS) return `took ${Math.round(ms)} ms`;
  if (!(status in operation.described.responses) && !EDGE_STATUSES.has(status))
    return `returned ${status}, which is not documented: ${text.slice(0, 500)}`;
  if (status >= 400) return findErrorFault(type, text);
  return (
    findTypeFault(operation, status, type) ??
    findShapeFault(operation, status, type, text) ??
    findAcceptedFault(operation, sent)
  );
};

const findErrorFault = (type: string, text: string): string | undefined => {
  if (type !== "application/json; charset=utf-8") return `returned an error with the content type ${type}`;
  const { message, detail, validations, ...rest } = JSON.parse(text) as Record<string, unknown>;
  const isGeneric =
    typeof message === "string" &&
    Object.keys(rest).length === 0 &&
    (detail === undefined || typeof detail === "string") &&
    (validations === undefined || Array.isArray(validations));
  return isGeneric ? undefined : `returned an error with an undocumented shape: ${text}`;
};

const getContent = ({ described }: Operation, status: number) => described.responses[status]?.content ?? {};

/** Returns a fault if the response's content type is not documented; undefined if the document names no content type. */
const findTypeFault = (operation: Operation, status: number, type: string): string | undefined => {
  const declared = Object.keys(getContent(operation, status));
  const sent = type.split(";")[0]?.trim() ?? "";
  if (declared.length === 0 || declared.includes(sent)) return undefined;
  return `returned ${status} with ${sent || "no type"}; documented: ${declared.join(", ")}`;
};

const findShapeFault = (operation: Operation, status: number, type: string, text: string): string | undefined => {
  const schema = getContent(operation, status)["application/json"]?.schema;
  if (!schema || !type.startsWith("application/json")) return undefined;
  const mismatch = findMismatch(schema, JSON.parse(text));
  return mismatch && `returned ${status} with an undocumented shape: ${mismatch}`;
};

/** Returns a fault if the server accepted a body that the document forbids. */
const findAcceptedFault = ({ body: schema, described }: Operation, { body }: SentRequest): string | undefined => {
  if (!schema || body === undefined) return undefined;
  // An empty body is equivalent to none.
  if ("raw" in body && body.raw === "" && described.requestBody?.required === false) return undefined;
  let value: unknown;
  try {
    // Undefined members are not sent.
    value = "raw" in body ? JSON.parse(body.raw) : JSON.parse(JSON.stringify(body.json));
  } catch {
    return "accepted a body that is not JSON";
  }
  const mismatch = findMismatch(schema, value);
  return mismatch && `accepted a body that the document forbids: ${mismatch}`;
};
