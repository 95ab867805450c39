// Converts errors to responses: a status and the generic body {message, detail, validations}. Unknown errors are also logged. Internal
// details are never shown (facts/platform 3.1).
import { NotFoundError, ParseError, ValidationError } from "elysia";
import { AppError, type ErrorKind, STATUS, type Validation } from "#base/errors.ts";
import { log } from "#base/log.ts";
import { COMMON_HEADERS } from "#base/network/common-headers.ts";
import { PassedOn } from "#base/network/local-reads.ts";
import { CommitError, isMoved, type Refusal } from "#db/engine/store.ts";
import { asHookRefusal, HookFailure } from "#src/hooks/protocol.ts";
import { WireError } from "#src/wire/index.ts";
import { acceptsPage, renderPlainPage } from "./plain-page.ts";
import { isWord, listProblems, type Violation } from "./validation-words.ts";

const COMMIT_ERRORS: Record<Refusal, { kind: ErrorKind; message: string }> = {
  constraint: { kind: "conflict", message: "The change conflicts with something that already exists." },
  stale: { kind: "conflict", message: "The resource has changed in the meantime. Read it again and retry." },
  overloaded: { kind: "overloaded", message: "The server is overloaded. Please retry." },
  unreachable: { kind: "overloaded", message: "The server's database is not responding. Please retry." },
  moved: { kind: "overloaded", message: "Another server is handling this now: nothing was saved. Please retry." },
  closed: { kind: "overloaded", message: "The server is stopping. Please retry." },
  full: { kind: "storage_full", message: "The server's disk is full: nothing was saved." },
  damaged: {
    kind: "overloaded",
    message: "The server's database is damaged. Its administrator must restore a backup.",
  },
  unknown: { kind: "internal", message: "The change could not be confirmed. It may or may not have been saved." },
};

/** Seconds after which a rejected request may be retried. */
const RETRY_AFTER_S = "1";

const movedRequests = new WeakSet<Request>();

/** Returns whether the request failed because another node now owns its shard. */
export const hasMoved = (request: Request): boolean => movedRequests.has(request);

/** Converts any thrown value to an AppError. */
const toAppError = (error: unknown, path: string): AppError => {
  if (error instanceof AppError) return error;
  if (error instanceof CommitError) {
    const { kind, message } = COMMIT_ERRORS[error.reason];
    return new AppError(kind, message, { cause: error });
  }
  const refusal = asHookRefusal(error);
  if (refusal) return refusal;
  if (error instanceof ParseError && error.cause) return toAppError(error.cause, path);
  if (error instanceof ValidationError) return toValidationError(error, path);
  if (error instanceof NotFoundError) return new AppError("not_found", "Route not found.");
  return new AppError("internal", "An internal error occurred.", { cause: error });
};

/** Returns whether the client closed its side before its request was fully read. */
const isClientGone = (error: unknown, { signal }: Request): boolean =>
  signal.aborted && error instanceof DOMException && error.name === "AbortError";

/** Returns the response to an error; logs errors that are not the caller's fault. */
export const errorResponse = (
  error: unknown,
  request: Request,
  extraHeaders: Record<string, string> = {},
): Response => {
  const appError = toAppError(error, getPath(request.url));
  if (isMoved(appError.cause)) movedRequests.add(request);
  if (STATUS[appError.kind] >= 500) {
    // Overload, shutdown and misrouted requests are not failures and would flood the log.
    const isExpected =
      appError.kind === "overloaded" ||
      // The answer of an agent or a program of a workspace makes no sense.
      error instanceof WireError ||
      error instanceof HookFailure ||
      error instanceof PassedOn ||
      isClientGone(appError.cause ?? error, request);
    const level = isExpected ? "debug" : "error";
    log("http")[level]("{method} {path} failed", {
      method: request.method,
      path: getPath(request.url),
      error: appError.cause ?? appError,
    });
  }
  const headers = new Headers({
    "content-type": "application/json; charset=utf-8",
    ...COMMON_HEADERS,
    ...extraHeaders,
  });
  if (appError.kind === "unauthenticated" || appError.kind === "forbidden") headers.set("www-authenticate", "Bearer");
  if (appError.kind === "overloaded" || appError.kind === "too_many_requests") {
    headers.set("retry-after", String(appError.retry_after ?? RETRY_AFTER_S));
  }
  const status = STATUS[appError.kind];
  if (acceptsPage(request) && !getPath(request.url).startsWith("/api/")) {
    return renderPlainPage({ ...toPageText(appError), status, home: "/" }, headers);
  }
  return new Response(JSON.stringify(toBody(appError)), { status, headers });
};

/** Returns the text for a person who opened a URL outside the API in a browser. */
const toPageText = ({ kind, message, detail }: AppError): { title: string; text: string } => {
  if (kind === "not_found") return { title: "Page not found", text: "No page exists at this URL." };
  const text = [message, detail].filter(Boolean).join(" ");
  return { title: TITLES[kind] ?? "This page cannot be shown", text };
};

const TITLES: Partial<Record<ErrorKind, string>> = {
  internal: "Something went wrong",
  overloaded: "The server is busy",
  too_many_requests: "Too many requests",
};

/** Returns the generic body without empty members. */
const toBody = (
  error: AppError,
): { message: string; kind?: string; detail?: string; validations?: readonly Validation[] } => ({
  message: error.message,
  ...(error.reason ? { kind: error.reason } : {}),
  ...(error.detail ? { detail: error.detail } : {}),
  ...(error.validations.length > 0 ? { validations: error.validations } : {}),
  ...error.members,
});

/** Returns the path without the query, because a query can contain a token. */
export const getPath = (url: string): string => {
  const start = url.indexOf("/", url.indexOf("//") + 2);
  const end = url.indexOf("?", start);
  return end < 0 ? url.slice(start) : url.slice(start, end);
};

const MESSAGES: Record<string, string> = {
  body: "Validation failed.",
  query: "Query parameters have invalid values.",
  params: "Path parameters have invalid values.",
  headers: "Request headers have invalid values.",
  // Elysia's message for a query number that is out of bounds; it lacks the parameter's name.
  property: "Query parameters have invalid values.",
};

const toValidationError = (error: ValidationError, path: string): AppError => {
  const part = String(error.type);
  // The original error is not the cause, because its message contains the whole value.
  if (!(part in MESSAGES))
    return new AppError("internal", "An internal error occurred.", { cause: new Error(`in ${part}`) });
  const violations = (error.all as readonly Violation[]).filter((one) => "path" in one && one.summary !== undefined);
  const isNoRoute = part === "params" && violations.some((one) => isWord(one) && path.endsWith(`/${one.value}`));
  if (isNoRoute) return new AppError("not_found", "Route not found.");
  const validations = listProblems(violations);
  return new AppError("invalid", MESSAGES[part] as string, { validations });
};
