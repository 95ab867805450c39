// Counts requests by route template, such as `/api/v2/workspaces/:workspace`, and never by path, which a client can choose freely. Nothing
// is counted when metrics are disabled.
import { Elysia } from "elysia";
import { isTraceEnabled } from "#base/log.ts";
import type { Metrics } from "#base/metrics.ts";
import { adoptSpan, beginSpan, isTraced, runInSpan } from "#base/spans.ts";

type Handle = (request: Request) => Promise<Response>;

/** For requests that reached no route: rejected before routing, an unknown path, or proxied to an app. */
const UNROUTED = "none";
const METHODS = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

const routes = new WeakMap<Request, string>();

/** Records which route a request has reached, if metrics are enabled. Must be used before the routes. */
export const rememberRoute = (metrics: Metrics | undefined) =>
  new Elysia().onTransform({ as: "global" }, ({ request, route }) => {
    if (metrics || isTraceEnabled() || isTraced()) routes.set(request, route);
  });

/** Returns whether the request has reached a route; recorded while requests are counted or traced. */
export const isRouted = (request: Request): boolean => routes.has(request);

/** Returns the status the client sees: Bun's own response to an upgrade does not appear here. */
const toStatus = (request: Request, { status }: Response): number =>
  status === 200 && request.headers.get("upgrade") !== null ? 101 : status;

/** Wraps `handle` to count its responses and their durations. */
export const countRequests = (handle: Handle, metrics: Metrics | undefined): Handle => {
  if (!metrics) return handle;
  return async (request) => {
    const startedAt = metrics.clock.monotonic();
    const response = await handle(request);
    const seconds = (metrics.clock.monotonic() - startedAt) / 1000;
    const method = METHODS.has(request.method) ? request.method : "other";
    metrics.countRequest(method, routes.get(request) ?? UNROUTED, toStatus(request, response), seconds);
    return response;
  };
};

/**
 * Wraps `handle` so that each request has a span, which continues the caller's trace (`traceparent`). `isExcluded` excludes requests.
 * Without a collector, returns `handle` unchanged.
 */
export const traceRequests = (handle: Handle, isExcluded: (request: Request) => boolean): Handle => {
  if (!isTraced()) return handle;
  return async (request) => {
    if (isExcluded(request)) return handle(request);
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
      const response = await runInSpan(span, () => handle(request));
      const status = toStatus(request, response);
      span?.set({ "http.response.status_code": status });
      if (status >= 500) span?.fail(String(status));
      return response;
    } finally {
      const route = routes.get(request);
      // A path without a matching route can be anything.
      if (route !== undefined && route !== "/*" && route !== "") {
        span?.rename(`${method} ${route}`);
        span?.set({ "http.route": route });
      }
      span?.end();
    }
  };
};
