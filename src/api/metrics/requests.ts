// Counts requests by the template of their route, such as `/api/v2/workspaces/:workspace`: never by the path itself, which anyone can
// make up. With no metrics wanted nothing is counted.
import { Elysia } from "elysia";
import type { Metrics } from "#base/metrics.ts";
import { adoptSpan, beginSpan, isTraced, withinSpan } from "#base/spans.ts";
import { tracing } from "#base/trace.ts";

type Handle = (request: Request) => Promise<Response>;

/** What no route of ours has answered: refused before routing, no such path, or passed on to an app. */
const NONE = "none";
const METHODS = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

const routes = new WeakMap<Request, string>();

/** Remembers which route a request has reached, where someone will ask. Must be used before the routes are. */
export const rememberRoute = (metrics: Metrics | undefined) =>
  new Elysia().onTransform({ as: "global" }, ({ request, route }) => {
    if (metrics || tracing() || isTraced()) routes.set(request, route);
  });

/** Whether the request has reached one of our routes; known while requests are counted or traced. */
export const isRouted = (request: Request): boolean => routes.has(request);

/** What a client sees: Bun's own answer to an upgrade never reaches it. */
const toStatus = (request: Request, { status }: Response): number =>
  status === 200 && request.headers.get("upgrade") !== null ? 101 : status;

/** Counts what comes out of `handle` and how long it took. */
export const countRequests = (handle: Handle, metrics: Metrics | undefined): Handle => {
  if (!metrics) return handle;
  return async (request) => {
    const began = metrics.clock.monotonic();
    const response = await handle(request);
    const seconds = (metrics.clock.monotonic() - began) / 1000;
    const method = METHODS.has(request.method) ? request.method : "other";
    metrics.countRequest(method, routes.get(request) ?? NONE, toStatus(request, response), seconds);
    return response;
  };
};

/**
 * Answers each request as a span, which continues the trace of a caller that names one (`traceparent`). `isLeftOut` says for which requests
 * none is made. Without a collector `handle` stays as it is.
 */
export const traceRequests = (handle: Handle, isLeftOut: (request: Request) => boolean): Handle => {
  if (!isTraced()) return handle;
  return async (request) => {
    if (isLeftOut(request)) return handle(request);
    const method = METHODS.has(request.method) ? request.method : "_OTHER";
    const traceparent = request.headers.get("traceparent");
    const tracestate = request.headers.get("tracestate");
    const parent = traceparent === null ? undefined : adoptSpan({ traceparent, ...(tracestate && { tracestate }) });
    const span = beginSpan({
      name: method,
      kind: "server",
      attributes: { "http.request.method": method, "url.scheme": new URL(request.url).protocol.slice(0, -1) },
      parent,
    });
    try {
      const response = await withinSpan(span, () => handle(request));
      const status = toStatus(request, response);
      span?.set({ "http.response.status_code": status });
      if (status >= 500) span?.fail(String(status));
      return response;
    } finally {
      const route = routes.get(request);
      // A path that none of our routes has may be anything.
      if (route !== undefined && route !== "/*" && route !== "") {
        span?.rename(`${method} ${route}`);
        span?.set({ "http.route": route });
      }
      span?.end();
    }
  };
};
