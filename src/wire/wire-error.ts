// The one error of the wire layer: a connection, stream or packet that cannot continue. Thrown by byte streams, yamux and
// DRPC framing; what a peer says on purpose about one call is an `RpcError` (drpc/frame.ts) instead.
import { AppError, type ErrorKind } from "#base/errors.ts";

/** Why it cannot continue. Closed set: `protocol` and `too_large` are the peer's fault, the rest is life. */
export type WireFailure = "closed" | "reset" | "protocol" | "timeout" | "too_large" | "too_slow" | "refused";

// What a caller over HTTP sees when a wire failure reaches the edge: try again, except where trying again cannot help.
const KIND: Record<WireFailure, ErrorKind> = {
  closed: "overloaded",
  reset: "overloaded",
  refused: "overloaded",
  too_slow: "overloaded",
  timeout: "timeout",
  too_large: "too_large",
  protocol: "internal",
};

export class WireError extends AppError {
  readonly failure: WireFailure;

  constructor(failure: WireFailure, message: string, cause?: unknown) {
    super(KIND[failure], message, { cause });
    this.failure = failure;
  }
}

/** Any thrown value as a WireError; unknown ones count as a closed connection. */
export const asWireError = (error: unknown): WireError =>
  error instanceof WireError ? error : new WireError("closed", "The connection failed.", error);
