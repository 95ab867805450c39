// Which methods a path takes, for 405 (a path that exists with another method) instead of 404.
import type { AnyElysia } from "elysia";
import { pathOf } from "./errors.ts";

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;

/** The methods of the routes that match this request's path; empty when there is no such path. */
export const methodsOf = (ctx: { app?: AnyElysia }, request: Request): string[] => {
  const path = pathOf(request.url);
  return METHODS.filter((method) => method !== request.method && ctx.app?.router.http.find(method, path) !== null);
};
