// Caches a report's data for a time range until data in it is written (rule IN-13): a year is read once, and then only changes. Lives in
// the process that computes reports.
import type { Rows } from "../../engine/rows.ts";
import { BLOCK } from "./block.ts";
import { type Group, type Span, walk } from "./walk.ts";

/** A report's data for a range. Cached parts are joined to others and never changed. */
export interface Part {
  add(group: Group): void;
  /** Approximate memory size in bytes. */
  readonly weight: number;
}

/** Describes a part for the buckets [from, to). `name` identifies everything it depends on except the range and the templates. */
export type Wanted<P extends Part> = {
  readonly name: string;
  readonly details?: boolean;
  make(from: number, to: number): P;
};

/** Maximum bytes of all cached parts. */
const MOST = 32 * 2 ** 20;

export class Deps {
  readonly #most: number;
  readonly #kept = new Map<string, { part: Part; version: number; weight: number }>();
  #weight = 0;

  constructor(most = MOST) {
    this.#most = most;
  }

  /** Returns the parts of a span, consecutive and in order. */
  async of<P extends Part>(read: Rows, span: Span, wanted: Wanted<P>): Promise<P[]> {
    const templates = span.templates ? [...span.templates].sort((a, b) => a - b).join() : "all";
    const parts: P[] = [];
    for (const [from, to] of cut(span)) {
      const key = `${wanted.name} ${templates} ${from} ${to}`;
      const version = await loadVersion(read, from, to);
      const known = this.#kept.get(key);
      if (known?.version === version) {
        this.#forget(key);
        this.#keep(key, known);
        // The name implies the type of the part.
        parts.push(known.part as P);
        continue;
      }
      const part = wanted.make(from, to);
      await walk(read, { ...span, from, to }, (group) => part.add(group), { details: wanted.details ?? false });
      this.#forget(key);
      this.#keep(key, { part, version, weight: part.weight + key.length });
      parts.push(part);
    }
    return parts;
  }

  #forget(key: string): void {
    this.#weight -= this.#kept.get(key)?.weight ?? 0;
    this.#kept.delete(key);
  }

  /** Evicts the least recently used parts first. */
  #keep(key: string, one: { part: Part; version: number; weight: number }): void {
    this.#kept.set(key, one);
    this.#weight += one.weight;
    for (const oldest of this.#kept.keys()) {
      if (this.#weight <= this.#most) break;
      this.#forget(oldest);
    }
  }
}

/** Versions only increase, so their sum changes with each of them. */
const loadVersion = async (read: Rows, from: number, to: number): Promise<number> => {
  const sum = "select coalesce(sum(version), 0) from usage_blocks where block between ? and ?";
  const [row] = await read(sum, [Math.floor(from / BLOCK), Math.floor((to - 1) / BLOCK)]);
  return Number(row?.[0]);
};

/** Splits a span into a partial first block, whole blocks, and a separate last one, which is still changing. */
const cut = ({ from, to }: Span): [from: number, to: number][] => {
  if (to <= from) return [];
  const last = Math.floor((to - 1) / BLOCK) * BLOCK;
  const first = Math.min(last, Math.ceil(from / BLOCK) * BLOCK);
  const edges = from >= last ? [from, to] : [...new Set([from, first, last, to])];
  return edges.slice(1).map((end, i) => [edges[i] as number, end]);
};
