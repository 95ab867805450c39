// The one kind of error that calls are rejected with.

/** A field that the server refused, and why. */
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

/** What the server answered when it did not do what it was asked, or that it could not be reached. */
export class SlipwayError extends Error {
  override readonly name = "SlipwayError";
  /** The status of HTTP; 0 when no answer came. */
  readonly status: number;
  readonly detail: string;
  /** Which of several reasons it is, for programs; empty where the status says it all. */
  readonly kind: string;
  /** The fields that were refused, with a 400. */
  readonly validations: readonly Validation[];
  /** The id under which the server's log names the request. */
  readonly requestId: string;
  /** When the server says when to ask again: the pause in milliseconds. */
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

  /** Reads the error out of an answer. What a proxy in between has answered becomes the `detail`. */
  static async read(response: Response): Promise<SlipwayError> {
    const text = await response.text();
    const retryAfterMs = toMilliseconds(response.headers.get("retry-after"));
    const more = {
      requestId: response.headers.get("x-request-id") ?? "",
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    };
    return new SlipwayError(response.status, parseBody(text), more);
  }

  /** No answer came, or it broke off. */
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
    // Not JSON: a proxy in between has answered.
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
