// Counts values by size, for histograms.
const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export type HistogramValue = {
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
  readonly metricName: string;
};

/** Counts values by size; in seconds by default. */
export class Buckets {
  readonly #bounds: readonly number[];
  readonly #counts: number[];
  #sum = 0;
  #count = 0;

  constructor(bounds: readonly number[] = SECONDS) {
    this.#bounds = bounds;
    this.#counts = bounds.map(() => 0);
  }

  observe(value: number): void {
    this.#sum += value;
    this.#count += 1;
    for (let i = 0; i < this.#bounds.length; i++) {
      if (value > (this.#bounds[i] as number)) continue;
      this.#counts[i] = (this.#counts[i] as number) + 1;
      return;
    }
  }

  /** Returns the values as the registry prints them: each bucket includes all smaller ones. */
  values(name: string, label: Readonly<Record<string, string>> = {}): HistogramValue[] {
    let total = 0;
    const rows = this.#bounds.map((le, i): HistogramValue => {
      total += this.#counts[i] as number;
      return { labels: { ...label, le }, value: total, metricName: `${name}_bucket` };
    });
    rows.push({ labels: { ...label, le: "+Inf" }, value: this.#count, metricName: `${name}_bucket` });
    rows.push({ labels: label, value: this.#sum, metricName: `${name}_sum` });
    rows.push({ labels: label, value: this.#count, metricName: `${name}_count` });
    return rows;
  }
}
