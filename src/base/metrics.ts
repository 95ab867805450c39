// Metrics of this process for Prometheus. Values counted on hot paths are plain numbers in an object here; names, labels and text are
// created only on a scrape. Labels must be bounded by the code: never an ID, name or address of a person.

import { Counter, Gauge, type Metric, Registry } from "prom-client";
import { Buckets, type HistogramValue } from "./buckets.ts";
import type { Clock } from "./clock.ts";
import type { LabeledValues } from "./labelled-metrics.ts";

export class Metrics {
  readonly registry = new Registry();
  readonly clock: Clock;
  /** Answered requests by `method route status`, all three of which are bounded by the code. */
  readonly requests = new Map<string, number>();
  readonly requestSeconds = new Buckets();
  readonly mailboxSeconds = new Buckets();
  readonly commitSeconds = new Buckets();
  readonly commitRows = new Buckets([1, 2, 5, 10, 25, 50, 100, 250, 500, 1000]);
  mailboxWaiting = 0;
  readonly models = { calls: 0, retries: 0, tokens_in: 0, tokens_out: 0, failures: new Map<string, number>() };

  constructor(clock: Clock) {
    this.clock = clock;
  }

  countRequest(method: string, route: string, status: number, seconds: number): void {
    const key = `${method} ${route} ${status}`;
    this.requests.set(key, (this.requests.get(key) ?? 0) + 1);
    this.requestSeconds.observe(seconds);
  }

  /** Registers a value that goes up and down, read on each scrape. */
  gauge(name: string, help: string, read: () => number | LabeledValues, labelNames: string[] = []): void {
    const gauge: Gauge = new Gauge({
      name,
      help,
      labelNames,
      registers: [this.registry],
      collect() {
        gauge.reset();
        for (const { labels, value } of toRows(read())) gauge.set(labels, value);
      },
    });
  }

  /** Registers a value that only goes up. */
  counter(name: string, help: string, read: () => number | LabeledValues, labelNames: string[] = []): void {
    const counter: Counter = new Counter({
      name,
      help,
      labelNames,
      registers: [this.registry],
      collect() {
        counter.reset();
        for (const { labels, value } of toRows(read())) counter.inc(labels, value);
      },
    });
  }

  histogram(name: string, help: string, buckets: Buckets): void {
    this.#histogram(name, help, () => buckets.values(name));
  }

  /** Registers one histogram per value of a label, read on each scrape. */
  histograms(name: string, help: string, label: string, all: ReadonlyMap<string, Buckets>): void {
    this.#histogram(name, help, () =>
      [...all].flatMap(([value, buckets]) => buckets.values(name, Object.fromEntries([[label, value]]))),
    );
  }

  #histogram(name: string, help: string, read: () => HistogramValue[]): void {
    const get = async () => ({ name, help, type: "histogram", values: read(), aggregator: "sum" });
    // The registry uses only this part of a metric.
    this.registry.registerMetric({ name, get, reset: () => {} } as unknown as Metric);
  }

  text(): Promise<string> {
    return this.registry.metrics();
  }
}

const toRows = (read: number | LabeledValues): LabeledValues =>
  typeof read === "number" ? [{ labels: {}, value: read }] : read;
