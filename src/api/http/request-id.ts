// The id of a request: the caller's or proxy's own, which returns with the answer (rule HT-12); those without one get one while
// requests are traced, and when the audit log tells of them. It stands in every line of the trace.
import { isUuid, uuid } from "#base/ids.ts";
import { runAsPartOf, stopwatch, traceStep, tracing } from "#base/trace.ts";
import { isRouted } from "../metrics/requests.ts";
import { getPath } from "./errors.ts";

/** What can stand in a header and a log line without harm. */
const REQUEST_ID = /^[\w.:/+=-]{1,128}$/;

/** Its own id when that is sane, else one of ours while requests are traced, else none. */
export const getRequestId = (request: Request): string | undefined => {
  const id = request.headers.get("x-request-id");
  if (id !== null && REQUEST_ID.test(id)) return id;
  return tracing() ? getRequestUuid(request) : undefined;
};

const made = new WeakMap<Request, string>();

/** As the audit log has it: its own where that is a UUID, else one of ours, the same each time. */
export const getRequestUuid = (request: Request): string => {
  const own = request.headers.get("x-request-id") ?? "";
  if (isUuid(own)) return own.toLowerCase();
  const id = made.get(request) ?? uuid();
  made.set(request, id);
  return id;
};

/** The one of ours that someone has asked for in the meantime. */
export const findMadeId = (request: Request): string | undefined => made.get(request);

/** Answers, and says so in the trace; whatever happens in the meantime on its behalf names the same id. */
export const tracedAnswer = async (
  request: Request,
  id: string,
  answer: (request: Request) => Promise<Response>,
): Promise<Response> => {
  const taking = stopwatch();
  const response = await runAsPartOf([id], () => answer(request));
  // A query may hold a token, and so may a path that someone mistyped.
  const { method, url } = request;
  const path = isRouted(request) ? getPath(url) : "none of ours";
  traceStep("request", [id], { method, path, status: response.status, took_ms: taking() });
  return response;
};
