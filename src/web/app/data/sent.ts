// A call as it was sent: what the lines of curl and of the command line are made of.
import type { Method } from "#schema/call-types.ts";

/** A method, and a path below /api/v2 with the names of its parameters behind colons. */
export type Route = `${Method} /${string}`;

/** `path` is below /api/v2. */
export type Sent = { readonly method: string; readonly path: string; readonly route: Route; readonly body?: unknown };
