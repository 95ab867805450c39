// Exports spans to the collector. A limited number of spans is queued or in flight; further spans are dropped and counted. No work waits
// for the collector.
import { type ExportResult, ExportResultCode } from "@opentelemetry/core";
import { BatchSpanProcessor, type ReadableSpan, type SpanExporter, type SpanProcessor } from "@opentelemetry/sdk-trace";
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import type { SpanCounts } from "#base/spans.ts";

/** Maximum number of spans that are queued or in flight, about 2 MB. Further spans are dropped. */
const MAX_PENDING = 2_048;
/** Maximum number of spans per export. Serializing them takes about a millisecond. */
const BATCH_SIZE = 256;
const SEND_DELAY_MS = 1_000;
const LOG_INTERVAL_MS = 60_000;

export class CountedSpans implements SpanProcessor {
  readonly counts: SpanCounts = { exported: 0, buffer_full: 0, export_failed: 0 };
  readonly #clock: Clock;
  readonly #endpoint: string;
  readonly #processor: BatchSpanProcessor;
  #pendingCount = 0;
  #loggedAt = Number.NEGATIVE_INFINITY;
  #isFailing = false;

  constructor(exporter: SpanExporter, endpoint: URL, clock: Clock) {
    this.#clock = clock;
    this.#endpoint = endpoint.host;
    this.#processor = new BatchSpanProcessor({
      exporter: {
        export: (spans, done) =>
          exporter.export(spans, (result) => {
            this.#countExported(spans.length, result);
            // After a failure, the processor would write to OpenTelemetry's log, which is not shown anywhere.
            done({ code: ExportResultCode.SUCCESS });
          }),
        shutdown: () => exporter.shutdown(),
      },
      maxQueueSize: MAX_PENDING,
      maxExportBatchSize: BATCH_SIZE,
      scheduledDelayMillis: SEND_DELAY_MS,
    });
  }

  onStart(): void {}

  onEnd(span: ReadableSpan): void {
    if (this.#pendingCount >= MAX_PENDING) {
      this.counts.buffer_full += 1;
      return;
    }
    this.#pendingCount += 1;
    this.#processor.onEnd(span);
  }

  forceFlush(): Promise<void> {
    return this.#processor.forceFlush();
  }

  shutdown(): Promise<void> {
    return this.#processor.shutdown();
  }

  #countExported(count: number, { code, error }: ExportResult): void {
    this.#pendingCount -= count;
    if (code === ExportResultCode.SUCCESS) {
      this.counts.exported += count;
      if (this.#isFailing) log("server").info("the collector accepts spans again", { collector: this.#endpoint });
      this.#isFailing = false;
      return;
    }
    this.counts.export_failed += count;
    this.#isFailing = true;
    const now = this.#clock.monotonic();
    if (now - this.#loggedAt < LOG_INTERVAL_MS) return;
    this.#loggedAt = now;
    log("server").warn("the collector does not accept spans: {reason}", {
      collector: this.#endpoint,
      reason: error?.message || "no answer",
      dropped: this.counts.export_failed + this.counts.buffer_full,
    });
  }
}
