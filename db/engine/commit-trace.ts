// Records which requests each commit group belongs to, for the trace log. Used by the writer, only while tracing is on.
import { currentRequests, stopwatch, traceStep, tracing } from "#base/trace.ts";

export class CommitTrace<Batch extends object> {
  readonly #requests = new WeakMap<Batch, ReadonlySet<string>>();

  /** Remembers the requests on whose behalf this batch was handed in. */
  submitted(batch: Batch): void {
    const requests = currentRequests();
    if (requests.size > 0) this.#requests.set(batch, requests);
  }

  /** Starts measuring a group; undefined while tracing is off. */
  begin(): (() => number) | undefined {
    return tracing() ? stopwatch() : undefined;
  }

  /** A line for each request of a group that has reached the disk: its number, its batches, and how long it took. */
  committed(batches: readonly Batch[], group: number, took_ms: number): void {
    const requests = new Set(batches.flatMap((batch) => [...(this.#requests.get(batch) ?? [])]));
    traceStep("commit", requests, { group, batches: batches.length, took_ms });
  }
}
