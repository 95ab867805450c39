// Counts requests by the template of their route, such as `/api/v2/workspaces/:workspace`: never by the path itself, which anyone can
// make up. With no metrics wanted nothing is counted.
import { Elysia } from "elysia";
import type { Metrics } from "#base/metrics.ts";
import { tracing } from "#base/trace.ts";

type Handle = (request: Request) => Promise<Response>;

/** What no route of ours has answered: refused before routing, no such path, or passed on to an app. */
const NONE = "none";
const METHODS = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

const routes = new WeakMap<Request, string>();

/** Remembers which route a request has reached, where someone will ask. Must be used before the routes are. */
export const rememberRoute = (metrics: Metrics | undefined) =>
  new Elysia().onTransform({ as: "global" }, ({ request, route }) => {
    if (metrics || tracing()) routes.set(request, route);
  });

/** Whether the request has reached one of our routes; known while requests are counted or traced. */
export const isRouted = (request: Request): boolean => routes.has(request);

/** Counts what comes out of `handle` and how long it took. */
export const countRequests = (handle: Handle, metrics: Metrics | undefined): Handle => {
  if (!metrics) return handle;
  return async (request) => {
    const began = metrics.clock.monotonic();
    const response = await handle(request);
    const seconds = (metrics.clock.monotonic() - began) / 1000;
    const upgraded = response.status === 200 && request.headers.get("upgrade") !== null;
    const method = METHODS.has(request.method) ? request.method : "other";
    metrics.countRequest(method, routes.get(request) ?? NONE, upgraded ? 101 : response.status, seconds);
    return response;
  };
};
