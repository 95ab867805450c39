// Shared by the tests of calls: a session whose peer runs the test's handlers, and helpers for bytes and signals.
import type { Handler, Router } from "#src/wire/drpc/server.ts";
import { serveSession } from "#src/wire/drpc/server.ts";
import { sessionPair } from "./support.ts";

export const ascii = (decodeText: string): Uint8Array => new TextEncoder().encode(decodeText);
export const decodeText = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

/** Returns a client session whose peer serves these handlers. */
export const serveHandlers = (
  handlers: Record<string, Handler>,
  onError?: (method: string, error: unknown) => void,
) => {
  const pair = sessionPair();
  const router: Router = new Map(Object.entries(handlers));
  const served = serveSession(pair.server, router, { clock: pair.clock, onError });
  return { ...pair, served };
};

export const unary = (
  run: (request: Uint8Array, signal: AbortSignal) => Promise<Uint8Array> | Uint8Array,
): Handler => ({
  kind: "unary",
  run: async (request, { signal }) => run(request, signal),
});

export const waitForAbort = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
