// Metrics of the AI gateway: calls by dialect, model and outcome, their durations, and rejections.

import { Buckets } from "#base/buckets.ts";
import type { LabeledValues } from "#base/labelled-metrics.ts";
import type { Metrics } from "#base/metrics.ts";
import type { CallOutcome } from "#db/schema/model-spend.ts";
import { DIALECTS, type Dialect } from "#src/llm/gateway/endpoint.ts";

/** Model calls take longer than anything else here. */
const BUCKET_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];
/** Maximum number of models with separate metrics. */
const MAX_MODELS = 100;
const OTHER_MODEL = "other";

/** A call that the gateway did not reject. */
type CountedCall = {
  readonly dialect: Dialect;
  /** The model name an administrator configured; undefined for a name chosen by the caller. */
  readonly model: string | undefined;
  readonly outcome: CallOutcome;
  readonly first_byte_ms: number | null;
  readonly duration_ms: number;
};

const makeDialectBuckets = (): ReadonlyMap<Dialect, Buckets> =>
  new Map(DIALECTS.map((dialect) => [dialect, new Buckets(BUCKET_SECONDS)]));

export class GatewayMetrics {
  readonly #calls = new Map<string, { readonly labels: Record<string, string>; value: number }>();
  readonly #refusals = new Map<string, { readonly labels: Record<string, string>; value: number }>();
  readonly #models = new Set<string>();
  readonly #firstByteSeconds = makeDialectBuckets();
  readonly #seconds = makeDialectBuckets();

  count({ dialect, model: configuredModel, outcome, first_byte_ms, duration_ms }: CountedCall): void {
    const model = this.#toLabel(configuredModel);
    increase(this.#calls, { dialect, model, outcome });
    if (first_byte_ms !== null) this.#firstByteSeconds.get(dialect)?.observe(first_byte_ms / 1000);
    this.#seconds.get(dialect)?.observe(duration_ms / 1000);
  }

  /** `reason` is a constant from the code. */
  countRefusal(dialect: Dialect, reason: string): void {
    increase(this.#refusals, { dialect, reason });
  }

  /** Registers the metrics; `countOpen` returns the number of calls in progress. */
  register(metrics: Metrics, countOpen: () => number): void {
    const listCalls = (): LabeledValues => [...this.#calls.values()];
    const listRefusals = (): LabeledValues => [...this.#refusals.values()];
    metrics.counter("slipway_gateway_calls_total", "Model calls through the gateway that have ended.", listCalls, [
      "dialect",
      "model",
      "outcome",
    ]);
    metrics.counter("slipway_gateway_refusals_total", "Calls that the gateway rejected.", listRefusals, [
      "dialect",
      "reason",
    ]);
    metrics.histograms(
      "slipway_gateway_first_byte_seconds",
      "Time from a call to the first byte of its response.",
      "dialect",
      this.#firstByteSeconds,
    );
    metrics.histograms("slipway_gateway_call_seconds", "Time from a call to its end.", "dialect", this.#seconds);
    metrics.gauge("slipway_gateway_calls_open", "Model calls through the gateway that are in progress.", countOpen);
  }

  #toLabel(model: string | undefined): string {
    if (model === undefined || (!this.#models.has(model) && this.#models.size >= MAX_MODELS)) return OTHER_MODEL;
    this.#models.add(model);
    return model;
  }
}

const increase = (
  counts: Map<string, { readonly labels: Record<string, string>; value: number }>,
  labels: Record<string, string>,
): void => {
  const key = JSON.stringify(labels);
  const count = counts.get(key) ?? { labels, value: 0 };
  count.value += 1;
  counts.set(key, count);
};
