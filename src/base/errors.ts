// The one error type of the product. Code below the HTTP edge throws `AppError`; the edge (src/api/http/errors.ts) is the only
// place that turns a kind into a status. Anything else that is thrown is `internal`: logged, never shown.

/** Every way a request can fail, with the HTTP status it becomes. A closed set: add here, nowhere else. */
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

/** One broken field: `field` is the JSON or query name, `detail` says which rule it broke. */
export type Validation = { field: string; detail: string };

export class AppError extends Error {
  override readonly name = "AppError";
  readonly kind: ErrorKind;
  /** Safe to show to the caller, one sentence. Empty when there is nothing to add. */
  readonly detail: string;
  readonly validations: readonly Validation[];
  /** Seconds after which it may be tried again, where that is known. */
  readonly retry_after: number | undefined;
  /** A word for programs, where the status alone does not say which of several reasons it is. */
  readonly reason: string | undefined;
  /** More members of the answer, for programs. */
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

/** 400 with one entry per broken field (facts/platform 3.1). */
export const invalid = (message: string, validations: readonly Validation[] = [], detail = ""): AppError =>
  new AppError("invalid", message, { validations, detail });

/** 400 for a single broken field. */
export const invalidField = (field: string, detail: string): AppError =>
  invalid("Validation failed.", [{ field, detail }]);

/** 404. The same words for "is not there" and "you may not see it", so that existence never leaks (facts/platform 3.1). */
export const notFound = (): AppError =>
  new AppError("not_found", "Resource not found or you do not have access to this resource.");

/** 403: the caller may see the thing but not do this to it. */
export const forbidden = (detail = ""): AppError => new AppError("forbidden", "Forbidden.", { detail });

/** 409 with a reason in words. */
export const conflict = (message: string, validations: readonly Validation[] = []): AppError =>
  new AppError("conflict", message, { validations });

/** 503: nothing was begun, because who had to do it could not be reached or is not the one to do it any more. It may be asked again, elsewhere. */
export class NotBegun extends AppError {
  constructor(message: string) {
    super("overloaded", message, { retry_after: 1 });
  }
}

/** The kind of any thrown value: unknown errors are `internal`. */
export const toErrorKind = (error: unknown): ErrorKind => (error instanceof AppError ? error.kind : "internal");
