// The error with which calls reject.

/** A field that the server rejected, and why. */
export interface Validation {
  field: string;
  detail: string;
}

interface ErrorBody {
  message?: string;
  detail?: string;
  kind?: string;
  validations?: Validation[];
}

/** An error response of the server, or a failed connection. */
export class SlipwayError extends Error {
  override readonly name = "SlipwayError";
  /** The HTTP status; 0 if there was no response. */
  readonly status: number;
  readonly detail: string;
  /** A machine-readable reason; empty if the status is sufficient. */
  readonly kind: string;
  /** The rejected fields of a 400. */
  readonly validations: readonly Validation[];
  /** The request's ID in the server's log. */
  readonly requestId: string;
  /** The delay in milliseconds that the server requests before a retry. */
  readonly retryAfterMs: number | undefined;

  constructor(
    status: number,
    body: ErrorBody,
    more: { requestId?: string; retryAfterMs?: number; cause?: unknown } = {},
  ) {
    const { message = `The server answered ${status}.`, detail = "", kind = "", validations = [] } = body;
    super(message, { cause: more.cause });
    this.status = status;
    this.detail = detail;
    this.kind = kind;
    this.validations = validations;
    this.requestId = more.requestId ?? "";
    this.retryAfterMs = more.retryAfterMs;
  }

  /** Parses an error response. The response of a proxy becomes the `detail`. */
  static async read(response: Response): Promise<SlipwayError> {
    const text = await response.text();
    const retryAfterMs = toMilliseconds(response.headers.get("retry-after"));
    const more = {
      requestId: response.headers.get("x-request-id") ?? "",
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    };
    return new SlipwayError(response.status, parseBody(text), more);
  }

  /** Returns the error for a missing or incomplete response. */
  static unreachable(url: URL, cause: unknown): SlipwayError {
    const detail = cause instanceof Error ? cause.message : String(cause);
    return new SlipwayError(0, { message: `No answer from ${url.origin}.`, detail }, { cause });
  }
}

const parseBody = (text: string): ErrorBody => {
  try {
    const body: unknown = JSON.parse(text);
    if (typeof body === "object" && body !== null && typeof (body as ErrorBody).message === "string") return body;
  } catch {
    // Not JSON: the response of a proxy.
  }
  return { detail: text.slice(0, 200) };
};

/** `Retry-After` is a number of seconds or a date. */
const toMilliseconds = (header: string | null): number | undefined => {
  if (header === null || header.trim() === "") return undefined;
  const seconds = Number(header);
  const milliseconds = Number.isNaN(seconds) ? Date.parse(header) - Date.now() : seconds * 1000;
  return Number.isNaN(milliseconds) ? undefined : Math.max(0, milliseconds);
};
