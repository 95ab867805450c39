// Which requests a piece of work is done for, so that the log can follow them through mailbox and writer (area `trace` at level debug).
// Switched by the log's level alone; off, which it is as a rule, callers ask `tracing()`, one comparison, and nothing else happens.
import { AsyncLocalStorage } from "node:async_hooks";
import { systemClock } from "./clock.ts";
import { log, TRACE_AREA, wantsTrace } from "./log.ts";

const current = new AsyncLocalStorage<Set<string>>();
const trace = log(TRACE_AREA);
const NO_REQUESTS: ReadonlySet<string> = new Set();

/** True when someone wants to know. Ask before anything is made for a line of the trace. */
export const tracing = wantsTrace;

/** Runs `work` for these requests and no others. */
export const runAsPartOf = <T>(requests: Iterable<string>, work: () => T): T => current.run(new Set(requests), work);

/** The requests that this work is done for; none while tracing is off. */
export const currentRequests = (): ReadonlySet<string> => (tracing() && current.getStore()) || NO_REQUESTS;

/** What runs now turns out to be done for these, too: messages of several requests that go through one turn together. */
export const alsoFor = (requests: Iterable<string>): void => {
  const store = current.getStore();
  if (store) for (const request of requests) store.add(request);
};

/** A step in the life of these requests, a line for each: a word of the code, ids and figures. Never what was sent. */
export const traceStep = (
  step: "request" | "message" | "commit",
  requests: Iterable<string>,
  facts: Record<string, unknown>,
): void => {
  for (const request_id of requests) trace.debug(step, { request_id, ...facts });
};

/** Begins to measure; each call answers the milliseconds since then, with two digits behind the point. */
export const stopwatch = (): (() => number) => {
  const began = systemClock.monotonic();
  return () => Math.round((systemClock.monotonic() - began) * 100) / 100;
};

/** The same message to an actor, which says for which requests it ran; anyone who runs the mailbox may belong to another one. */
export const tracedMessage = <T>(actor: string, task: () => Promise<T>): (() => Promise<T>) => {
  const asked = currentRequests();
  const waiting = stopwatch();
  return () =>
    runAsPartOf(asked, async () => {
      const waited_ms = waiting();
      const taking = stopwatch();
      try {
        return await task();
      } finally {
        traceStep("message", currentRequests(), { actor, waited_ms, took_ms: taking() });
      }
    });
};
