// Exports spans to the collector: a bounded number is queued or in flight, and dropped ones are counted. Nothing waits for a collector.
import { type ExportResult, ExportResultCode } from "@opentelemetry/core";
import { BatchSpanProcessor, type ReadableSpan, type SpanExporter, type SpanProcessor } from "@opentelemetry/sdk-trace";
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import type { SpanCounts } from "#base/spans.ts";

/** Maximum number of spans that are queued or in flight, about 2 MB; more are dropped. */
const MAX_WAITING = 2_048;
/** Spans per export: serializing them takes about a millisecond. */
const BATCH = 256;
const SEND_DELAY_MS = 1_000;
const LOG_INTERVAL_MS = 60_000;

export class CountedSpans implements SpanProcessor {
  readonly counts: SpanCounts = { exported: 0, buffer_full: 0, export_failed: 0 };
  readonly #clock: Clock;
  readonly #endpoint: string;
  readonly #processor: BatchSpanProcessor;
  #waiting = 0;
  #logged_at = Number.NEGATIVE_INFINITY;
  #isFailing = false;

  constructor(exporter: SpanExporter, endpoint: URL, clock: Clock) {
    this.#clock = clock;
    this.#endpoint = endpoint.host;
    this.#processor = new BatchSpanProcessor({
      exporter: {
        export: (spans, done) =>
          exporter.export(spans, (result) => {
            this.#onExported(spans.length, result);
            // Otherwise the processor would write to OpenTelemetry's own log, which is not read.
            done({ code: ExportResultCode.SUCCESS });
          }),
        shutdown: () => exporter.shutdown(),
      },
      maxQueueSize: MAX_WAITING,
      maxExportBatchSize: BATCH,
      scheduledDelayMillis: SEND_DELAY_MS,
    });
  }

  onStart(): void {}

  onEnd(span: ReadableSpan): void {
    if (this.#waiting >= MAX_WAITING) {
      this.counts.buffer_full += 1;
      return;
    }
    this.#waiting += 1;
    this.#processor.onEnd(span);
  }

  forceFlush(): Promise<void> {
    return this.#processor.forceFlush();
  }

  shutdown(): Promise<void> {
    return this.#processor.shutdown();
  }

  #onExported(count: number, { code, error }: ExportResult): void {
    this.#waiting -= count;
    if (code === ExportResultCode.SUCCESS) {
      this.counts.exported += count;
      if (this.#isFailing) log("server").info("the collector takes spans again", { collector: this.#endpoint });
      this.#isFailing = false;
      return;
    }
    this.counts.export_failed += count;
    this.#isFailing = true;
    const now = this.#clock.monotonic();
    if (now - this.#logged_at < LOG_INTERVAL_MS) return;
    this.#logged_at = now;
    log("server").warn("the collector does not take spans: {reason}", {
      collector: this.#endpoint,
      reason: error?.message || "no answer",
      dropped: this.counts.export_failed + this.counts.buffer_full,
    });
  }
}
