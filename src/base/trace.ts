// Tracks the requests that the current work is done for, so that the log can follow them through mailbox and writer (area `trace` at level
// debug). Controlled only by the log level. If off, which is the default, callers call `isTraceEnabled` and do nothing else.
import { AsyncLocalStorage } from "node:async_hooks";
import { systemClock } from "./clock.ts";
import { isTraceEnabled, log, TRACE_AREA } from "./log.ts";

const current = new AsyncLocalStorage<Set<string>>();
const trace = log(TRACE_AREA);
const NO_REQUESTS: ReadonlySet<string> = new Set();

/** Runs `work` for exactly these requests. */
export const runForRequests = <T>(requests: Iterable<string>, work: () => T): T => current.run(new Set(requests), work);

/** Returns the requests the current work is done for; none while tracing is off. */
export const getCurrentRequests = (): ReadonlySet<string> => (isTraceEnabled() && current.getStore()) || NO_REQUESTS;

/** Adds requests to the current work, when messages of several requests are handled together. */
export const addRequests = (requests: Iterable<string>): void => {
  const store = current.getStore();
  if (store) for (const request of requests) store.add(request);
};

/** Logs a step, one line for each request. `facts` are constants of the code, IDs and numbers, never request data. */
export const logTraceStep = (
  step: "request" | "message" | "commit",
  requests: Iterable<string>,
  facts: Record<string, unknown>,
): void => {
  for (const request_id of requests) trace.debug(step, { request_id, ...facts });
};

/** Starts a timer; each call returns the milliseconds since then with two decimals. */
export const startStopwatch = (): (() => number) => {
  const startedAt = systemClock.monotonic();
  return () => Math.round((systemClock.monotonic() - startedAt) * 100) / 100;
};

/**
 * Wraps the handling of an actor's message so that it runs for the requests that sent the message, and logs a trace step. Without this, it
 * would run for the requests for which the mailbox is processed.
 */
export const traceMessage = <T>(actor: string, task: () => Promise<T>): (() => Promise<T>) => {
  const requests = getCurrentRequests();
  const readWaitMs = startStopwatch();
  return () =>
    runForRequests(requests, async () => {
      const waited_ms = readWaitMs();
      const readDurationMs = startStopwatch();
      try {
        return await task();
      } finally {
        logTraceStep("message", getCurrentRequests(), { actor, waited_ms, took_ms: readDurationMs() });
      }
    });
};
