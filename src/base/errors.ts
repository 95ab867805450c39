// Defines the only error type of the code. Code below the HTTP layer throws `AppError`; only src/api/http/errors.ts turns a kind into a
// status. Anything else that is thrown is `internal`: logged, never shown.

/** All kinds of errors with their HTTP status. This list is closed: add new kinds only here. */
export const STATUS = {
  invalid: 400,
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  not_acceptable: 406,
  timeout: 408,
  conflict: 409,
  gone: 410,
  precondition_failed: 412,
  too_large: 413,
  unsupported_media: 415,
  misdirected: 421,
  upgrade_required: 426,
  too_many_requests: 429,
  internal: 500,
  bad_gateway: 502,
  overloaded: 503,
  gateway_timeout: 504,
  storage_full: 507,
} as const;

export type ErrorKind = keyof typeof STATUS;

/** One invalid field: `field` is the JSON or query name, `detail` is the violated rule. */
export type Validation = { field: string; detail: string };

export class AppError extends Error {
  override readonly name = "AppError";
  readonly kind: ErrorKind;
  /** One sentence that is safe to show to the caller; empty if there is nothing to add. */
  readonly detail: string;
  readonly validations: readonly Validation[];
  /** Seconds after which the request can be retried, if known. */
  readonly retry_after: number | undefined;
  /** A machine-readable reason where the status alone is ambiguous. */
  readonly reason: string | undefined;
  /** Additional members of the response, for programs. */
  readonly members: Readonly<Record<string, unknown>>;

  constructor(
    kind: ErrorKind,
    message: string,
    options: {
      detail?: string;
      validations?: readonly Validation[];
      cause?: unknown;
      retry_after?: number;
      reason?: string;
      members?: Readonly<Record<string, unknown>>;
    } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.kind = kind;
    this.detail = options.detail ?? "";
    this.validations = options.validations ?? [];
    this.retry_after = options.retry_after;
    this.reason = options.reason;
    this.members = options.members ?? {};
  }
}

/** Returns a 400 with one entry per invalid field (facts/platform 3.1). */
export const invalid = (message: string, validations: readonly Validation[] = [], detail = ""): AppError =>
  new AppError("invalid", message, { validations, detail });

/** Returns a 400 for one invalid field. */
export const invalidField = (field: string, detail: string): AppError =>
  invalid("Validation failed.", [{ field, detail }]);

/**
 * Returns a 404. The message is the same for resources that do not exist and those the caller may not see, so that existence never leaks
 * (facts/platform 3.1).
 */
export const notFound = (): AppError =>
  new AppError("not_found", "Resource not found or you do not have access to this resource.");

/** Returns a 403: the caller can see the resource but may not perform the action. */
export const forbidden = (detail = ""): AppError => new AppError("forbidden", "Forbidden.", { detail });

/** Returns a 409 with a reason. */
export const conflict = (message: string, validations: readonly Validation[] = []): AppError =>
  new AppError("conflict", message, { validations });

/** A 503 for work that was not started, because its owner could not be reached or has changed. The request can be retried elsewhere. */
export class NotStartedError extends AppError {
  constructor(message: string) {
    super("overloaded", message, { retry_after: 1 });
  }
}

/** Returns the kind of any thrown value; unknown errors are `internal`. */
export const toErrorKind = (error: unknown): ErrorKind => (error instanceof AppError ? error.kind : "internal");
