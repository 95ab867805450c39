// The id of a request: the caller's or proxy's own, which comes back with the answer (rule HT-12); while requests are traced, those
// without one get one. It stands in every line of the trace.
import { uuid } from "#base/ids.ts";
import { asPartOf, stopwatch, traceStep, tracing } from "#base/trace.ts";
import { pathOf } from "./errors.ts";
import { isRouted } from "./metrics/requests.ts";

/** What can stand in a header and a log line without harm. */
const REQUEST_ID = /^[\w.:/+=-]{1,128}$/;

/** Its own id when that is sane, else one of ours while requests are traced, else none. */
export const idOf = ({ headers }: Request): string | undefined => {
  const id = headers.get("x-request-id");
  if (id !== null && REQUEST_ID.test(id)) return id;
  return tracing() ? uuid() : undefined;
};

/** Answers, and says so in the trace; whatever happens meanwhile on its behalf names the same id. */
export const tracedAnswer = async (
  request: Request,
  id: string,
  answer: (request: Request) => Promise<Response>,
): Promise<Response> => {
  const taking = stopwatch();
  const response = await asPartOf([id], () => answer(request));
  // A query may hold a token, and so may a path that somebody mistyped.
  const { method, url } = request;
  const path = isRouted(request) ? pathOf(url) : "none of ours";
  traceStep("request", [id], { method, path, status: response.status, took_ms: taking() });
  return response;
};
