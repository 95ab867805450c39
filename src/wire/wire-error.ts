// The error class of the wire layer, for a connection, stream or packet that cannot continue. Thrown by byte streams, yamux and DRPC
// framing. A peer's error for one call is an `RpcError` (drpc/frame.ts) instead.
import { AppError, type ErrorKind } from "#base/errors.ts";

/** The reason for a failure. `protocol` and `too_large` are the peer's fault; the others can happen at any time. */
export type WireFailure = "closed" | "reset" | "protocol" | "timeout" | "too_large" | "too_slow" | "refused";

// The kinds of error that HTTP callers get: retryable, except where a retry cannot help.
const KIND: Record<WireFailure, ErrorKind> = {
  closed: "overloaded",
  reset: "overloaded",
  refused: "overloaded",
  too_slow: "overloaded",
  timeout: "timeout",
  too_large: "too_large",
  protocol: "bad_gateway",
};

export class WireError extends AppError {
  readonly failure: WireFailure;

  constructor(failure: WireFailure, message: string, cause?: unknown) {
    super(KIND[failure], message, { cause });
    this.failure = failure;
  }
}

/** Converts any thrown value to a WireError; unknown ones count as a closed connection. */
export const toWireError = (error: unknown): WireError =>
  error instanceof WireError ? error : new WireError("closed", "The connection failed.", error);
