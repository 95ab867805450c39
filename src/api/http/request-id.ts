// Request IDs: the one sent by the caller or proxy, which is returned with the response (rule HT-12). Requests without one get one when
// they are traced or audited. The ID is in every line of the trace.
import { isUuid, uuid } from "#base/ids.ts";
import { isTraceEnabled } from "#base/log.ts";
import { logTraceStep, runForRequests, startStopwatch } from "#base/trace.ts";
import { isRouted } from "../metrics/requests.ts";
import { getPath } from "./errors.ts";

/** Characters that are safe in a header and a log line. */
const REQUEST_ID = /^[\w.:/+=-]{1,128}$/;

/** Returns the caller's ID if it is well-formed, or else a generated one while requests are traced, or else undefined. */
export const getRequestId = (request: Request): string | undefined => {
  const id = request.headers.get("x-request-id");
  if (id !== null && REQUEST_ID.test(id)) return id;
  return isTraceEnabled() ? getRequestUuid(request) : undefined;
};

const generatedIds = new WeakMap<Request, string>();

/** Returns the ID for the audit log: the caller's if it is a UUID, or else a generated one, the same each time. */
export const getRequestUuid = (request: Request): string => {
  const callerId = request.headers.get("x-request-id") ?? "";
  if (isUuid(callerId)) return callerId.toLowerCase();
  const id = generatedIds.get(request) ?? uuid();
  generatedIds.set(request, id);
  return id;
};

/** Returns the generated ID, if one was needed so far. */
export const findMadeId = (request: Request): string | undefined => generatedIds.get(request);

/** Handles the request and traces it; all work on its behalf has the same ID. */
export const runTraced = async (
  request: Request,
  id: string,
  answer: (request: Request) => Promise<Response>,
): Promise<Response> => {
  const readElapsedMs = startStopwatch();
  const response = await runForRequests([id], () => answer(request));
  // The query is left out because it can contain a token, and so can a mistyped path.
  const { method, url } = request;
  const path = isRouted(request) ? getPath(url) : "unknown";
  logTraceStep("request", [id], { method, path, status: response.status, took_ms: readElapsedMs() });
  return response;
};
