// The span of a batch from its submission to its flush: how long the batch waited for its group, and for the flush. Created only for the
// work of a request, turn or build, and only if a trace collector is configured.
import { beginSpan, getCurrentSpan, getErrorType, type Span } from "#base/spans.ts";
import { startStopwatch } from "#base/trace.ts";
import type { Statement } from "./sql.ts";

export class CommitSpan {
  readonly #span: Span;
  readonly #getElapsedMs = startStopwatch();

  private constructor(span: Span) {
    this.#span = span;
  }

  /** Returns undefined when tracing is off, or when the parent work is over. */
  static begin(system: "sqlite" | "postgresql", batch: readonly Statement[], rows: number): CommitSpan | undefined {
    if (getCurrentSpan()?.isOver !== false) return undefined;
    const attributes = {
      "db.system.name": system,
      "db.operation.batch.size": batch.length,
      "slipway.commit.rows": rows,
    };
    const span = beginSpan({ name: "commit", kind: "client", attributes });
    return span && new CommitSpan(span);
  }

  /** Records that the batch's group is being written, and how many batches the group has. */
  sending(batches: number): void {
    this.#span.set({ "slipway.commit.wait_ms": this.#getElapsedMs(), "slipway.commit.group_batches": batches });
  }

  /** Returns the same promise and ends the span with it. */
  endWith(settled: Promise<void>): Promise<void> {
    settled.then(
      () => this.#span.end(),
      (error) => {
        this.#span.fail((error as { reason?: string }).reason ?? getErrorType(error));
        this.#span.end();
      },
    );
    return settled;
  }
}
