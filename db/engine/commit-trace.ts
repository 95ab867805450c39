// Records in the trace log which requests each commit group belongs to. Used by the writer, only while tracing is on.
import { isTraceEnabled } from "#base/log.ts";
import { getCurrentRequests, logTraceStep, startStopwatch } from "#base/trace.ts";

export class CommitTrace<Batch extends object> {
  readonly #requests = new WeakMap<Batch, ReadonlySet<string>>();

  /** Records the requests that this batch belongs to. */
  onSubmit(batch: Batch): void {
    const requests = getCurrentRequests();
    if (requests.size > 0) this.#requests.set(batch, requests);
  }

  /** Starts measuring a group. Returns undefined while tracing is off. */
  begin(): (() => number) | undefined {
    return isTraceEnabled() ? startStopwatch() : undefined;
  }

  /** Logs a line for each request in a committed group: its number, its batches, and its duration. */
  onCommit(batches: readonly Batch[], group: number, took_ms: number): void {
    const requests = new Set(batches.flatMap((batch) => [...(this.#requests.get(batch) ?? [])]));
    logTraceStep("commit", requests, { group, batches: batches.length, took_ms });
  }
}
