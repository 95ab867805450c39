// Formats errors in each dialect, so that every SDK raises the same error as for the provider itself. Pure.
import type { Dialect } from "./endpoint.ts";

/** An error of the gateway itself. */
export type Refusal = {
  readonly status: 400 | 401 | 403 | 404 | 405 | 408 | 413 | 415 | 429 | 500 | 502 | 503;
  readonly message: string;
  /** A machine-readable code, such as `model_not_found` or `budget_exceeded`. */
  readonly code: string;
  /** Seconds after which the caller may retry. */
  readonly retry_after?: number;
};

const ANTHROPIC_TYPES: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  415: "invalid_request_error",
  429: "rate_limit_error",
  503: "overloaded_error",
};

const OPENAI_TYPES: Readonly<Record<number, string>> = {
  401: "invalid_request_error",
  403: "invalid_request_error",
  404: "invalid_request_error",
  429: "insufficient_quota",
  500: "server_error",
  502: "server_error",
  503: "server_error",
};

const GOOGLE_STATUS: Readonly<Record<number, string>> = {
  400: "INVALID_ARGUMENT",
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  405: "INVALID_ARGUMENT",
  408: "DEADLINE_EXCEEDED",
  413: "INVALID_ARGUMENT",
  415: "INVALID_ARGUMENT",
  429: "RESOURCE_EXHAUSTED",
  503: "UNAVAILABLE",
};

/** Returns the body of an error in the format of this dialect's provider. */
export const toRefusalBody = (dialect: Dialect, { status, message, code }: Refusal): object => {
  if (dialect === "anthropic") {
    return { type: "error", error: { type: ANTHROPIC_TYPES[status] ?? "api_error", message } };
  }
  if (dialect === "google") return { error: { code: status, message, status: GOOGLE_STATUS[status] ?? "INTERNAL" } };
  return { error: { message, type: OPENAI_TYPES[status] ?? "invalid_request_error", param: null, code } };
};

/** Returns the error as a response. `x-should-retry: false` stops SDKs from retrying permanent errors. */
export const toRefusalResponse = (dialect: Dialect, refusal: Refusal): Response => {
  const headers = new Headers({ "content-type": "application/json" });
  if (refusal.retry_after !== undefined) headers.set("retry-after", String(refusal.retry_after));
  else if (refusal.status < 500) headers.set("x-should-retry", "false");
  return new Response(JSON.stringify(toRefusalBody(dialect, refusal)), { status: refusal.status, headers });
};
