// One request of the fuzzer and the checks of its response, based only on the OpenAPI document (rules FZ-1, FZ-4).
import type { Client } from "#src/client.ts";
import { findMismatch } from "./conforms.ts";
import { fillPath, type Operation } from "./operations.ts";

export type SentRequest = {
  path: Record<string, string>;
  query: Record<string, string | undefined>;
  body: { json: unknown } | { raw: string; type: string } | undefined;
};

const RESPONSE_TIMEOUT_MS = 5_000;

/** Statuses that the edge may return for any request. */
const FROM_THE_EDGE = new Set([429]);

/** Sends it and returns what is wrong with the response; undefined if nothing. */
export const findFault = async (
  client: Client,
  operation: Operation,
  sent: SentRequest,
  reached: Set<string>,
): Promise<string | undefined> => {
  const began = performance.now();
  const body = sent.body === undefined ? undefined : "raw" in sent.body ? sent.body.raw : sent.body.json;
  const headers: Record<string, string> = sent.body && "raw" in sent.body ? { "content-type": sent.body.type } : {};
  const response = await client.fetch(operation.method, fillPath(operation, sent.path, sent.query), body, { headers });
  const type = response.headers.get("content-type") ?? "";
  const { status } = response;
  if (type.startsWith("text/event-stream")) {
    await response.body?.cancel();
    return typeFault(operation, status, type);
  }
  const text = await response.text();
  const ms = performance.now() - began;
  if (status < 300) reached.add(operation.name);
  if (status >= 500) return `answered ${status} ${text.slice(0, 500)}`;
  if (ms > RESPONSE_TIMEOUT_MS) return `took ${Math.round(ms)} ms`;
  if (!(status in operation.described.responses) && !FROM_THE_EDGE.has(status))
    return `answered ${status}, which is not documented: ${text.slice(0, 500)}`;
  if (status >= 400) return faultOfError(type, text);
  return (
    typeFault(operation, status, type) ??
    shapeFault(operation, status, type, text) ??
    findAcceptedFault(operation, sent)
  );
};

const faultOfError = (type: string, text: string): string | undefined => {
  if (type !== "application/json; charset=utf-8") return `an error of type ${type}`;
  const { message, detail, validations, ...rest } = JSON.parse(text) as Record<string, unknown>;
  const isGeneric =
    typeof message === "string" &&
    Object.keys(rest).length === 0 &&
    (detail === undefined || typeof detail === "string") &&
    (validations === undefined || Array.isArray(validations));
  return isGeneric ? undefined : `an error of another shape: ${text}`;
};

const getContent = ({ described }: Operation, status: number) => described.responses[status]?.content ?? {};

/** The response has a documented content type, or is empty if there is none. */
const typeFault = (operation: Operation, status: number, type: string): string | undefined => {
  const declared = Object.keys(getContent(operation, status));
  const sent = type.split(";")[0]?.trim() ?? "";
  if (declared.length === 0 || declared.includes(sent)) return undefined;
  return `answered ${status} with ${sent || "no type"}; documented: ${declared.join(", ")}`;
};

const shapeFault = (operation: Operation, status: number, type: string, text: string): string | undefined => {
  const schema = getContent(operation, status)["application/json"]?.schema;
  if (!schema || !type.startsWith("application/json")) return undefined;
  const wrong = findMismatch(schema, JSON.parse(text));
  return wrong && `answered ${status} with another shape than documented: ${wrong}`;
};

/** A body that the document forbids is not accepted. */
const findAcceptedFault = ({ body: schema, described }: Operation, { body }: SentRequest): string | undefined => {
  if (!schema || body === undefined) return undefined;
  // Equivalent to no body.
  if ("raw" in body && body.raw === "" && described.requestBody?.required === false) return undefined;
  let value: unknown;
  try {
    // As sent: undefined members are absent.
    value = "raw" in body ? JSON.parse(body.raw) : JSON.parse(JSON.stringify(body.json));
  } catch {
    return "accepted a body that is no JSON";
  }
  const wrong = findMismatch(schema, value);
  return wrong && `accepted a body that the document forbids: ${wrong}`;
};
