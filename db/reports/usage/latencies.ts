// Counts of each latency by user, and percentiles (facts/platform 6.2). For the insights reports.
import { hasBitIn } from "./block.ts";
import type { ReportPart } from "./parts.ts";
import type { Group } from "./walk.ts";

export type UserLatencies = { readonly counts: LatencyCounts; readonly templates: Set<number> };

export class Latencies implements ReportPart {
  readonly #users = new Map<number, UserLatencies>();

  get weight(): number {
    let weight = 0;
    for (const { counts } of this.#users.values()) weight += 400 + counts.weight;
    return weight;
  }

  /** Adds users even if they have no latencies. */
  add(group: Group): void {
    const { user, low, high, rows } = group;
    for (const { digest, template, detail } of rows) {
      if (!hasBitIn(digest.bits, low, high)) continue;
      const { counts, templates } = this.#getUser(user);
      templates.add(template);
      if (group.coversBlock) digest.eachLatency((value, count) => counts.add(value, count));
      else detail().eachLatency(low, high, (_, value) => counts.add(value, 1));
    }
  }

  #getUser(user: number): UserLatencies {
    let row = this.#users.get(user);
    if (!row) {
      row = { counts: new LatencyCounts(), templates: new Set() };
      this.#users.set(user, row);
    }
    return row;
  }

  static joinParts(parts: readonly Latencies[]): ReadonlyMap<number, UserLatencies> {
    const all = new Latencies();
    for (const part of parts) {
      for (const [user, { counts, templates }] of part.#users) {
        const row = all.#getUser(user);
        row.counts.addAll(counts);
        for (const template of templates) row.templates.add(template);
      }
    }
    return all.#users;
  }
}

/** Counts of values in half milliseconds, optimized for many small ones. */
export class LatencyCounts {
  #small = new Uint32Array(INITIAL_SIZE);
  #large: Map<number, number> | undefined;

  get weight(): number {
    return this.#small.byteLength + (this.#large?.size ?? 0) * 40;
  }

  add(value: number, count: number): void {
    if (value < this.#small.length) this.#small[value] = (this.#small[value] as number) + count;
    else this.#addLarge(value, count);
  }

  addAll(other: LatencyCounts): void {
    const { length } = other.#small;
    if (length > this.#small.length) this.#grow(length);
    const [to, from] = [this.#small, other.#small];
    for (let i = 0; i < length; i++) to[i] = (to[i] as number) + (from[i] as number);
    for (const [value, count] of other.#large ?? []) this.#addLarge(value, count);
  }

  #addLarge(value: number, count: number): void {
    if (value < MAX_SMALL_VALUE) {
      this.#grow(2 ** Math.ceil(Math.log2(value + 1)));
      this.#small[value] = count;
      return;
    }
    this.#large ??= new Map();
    this.#large.set(value, (this.#large.get(value) ?? 0) + count);
  }

  #grow(length: number): void {
    const grown = new Uint32Array(length);
    grown.set(this.#small);
    this.#small = grown;
  }

  /** Returns milliseconds, interpolated between ranks; -1 without values. */
  computePercentiles(ranks: readonly number[]): number[] {
    const values: number[] = [];
    const upTo: number[] = [];
    let total = 0;
    const addValue = (value: number, count: number): void => {
      values.push(value);
      total += count;
      upTo.push(total);
    };
    const small = this.#small;
    for (let value = 0; value < small.length; value++) if (small[value] !== 0) addValue(value, small[value] as number);
    for (const [value, count] of [...(this.#large ?? [])].sort(([a], [b]) => a - b)) addValue(value, count);
    if (total === 0) return ranks.map(() => -1);
    const valueAt = (index: number): number => (values[upTo.findIndex((seen) => index < seen)] ?? 0) / 2;
    return ranks.map((rank) => {
      const exact = rank * (total - 1);
      const [below, above] = [valueAt(Math.floor(exact)), valueAt(Math.ceil(exact))];
      return below + (above - below) * (exact - Math.floor(exact));
    });
  }
}
/** Arrays start with this many values and double up to half a second; larger values are stored separately. */
const INITIAL_SIZE = 128;
const MAX_SMALL_VALUE = 1024;
