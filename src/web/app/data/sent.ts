// A sent call, from which the curl and `slipway` commands are built.
import type { Method } from "#schema/call-types.ts";

/** A method, and a path below /api/v2 whose parameters are written as `:name`. */
export type Route = `${Method} /${string}`;

/** `path` is below /api/v2. */
export type SentRequest = {
  readonly method: string;
  readonly path: string;
  readonly route: Route;
  readonly body?: unknown;
};
