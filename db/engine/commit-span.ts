// The span of a batch on its way to the disk: how long it waited for its group, and how long until it was flushed. Made only for what a
// request, a turn or a build does, and only where a collector of traces is set.
import { beginSpan, currentSpan, errorType, type Span } from "#base/spans.ts";
import { stopwatch } from "#base/trace.ts";
import type { Statement } from "./sql.ts";

export class CommitSpan {
  readonly #span: Span;
  readonly #waited = stopwatch();

  private constructor(span: Span) {
    this.#span = span;
  }

  /** Undefined when tracing is off, or when the work it belongs to is over. */
  static begin(system: "sqlite" | "postgresql", batch: readonly Statement[], rows: number): CommitSpan | undefined {
    if (currentSpan()?.isOver !== false) return undefined;
    const attributes = {
      "db.system.name": system,
      "db.operation.batch.size": batch.length,
      "slipway.commit.rows": rows,
    };
    const span = beginSpan({ name: "commit", kind: "client", attributes });
    return span && new CommitSpan(span);
  }

  /** Its group is on its way now, which has so many batches. */
  sending(batches: number): void {
    this.#span.set({ "slipway.commit.wait_ms": this.#waited(), "slipway.commit.group_batches": batches });
  }

  /** The same promise; the span ends with it. */
  until(settled: Promise<void>): Promise<void> {
    settled.then(
      () => this.#span.end(),
      (error) => {
        this.#span.fail((error as { reason?: string }).reason ?? errorType(error));
        this.#span.end();
      },
    );
    return settled;
  }
}
