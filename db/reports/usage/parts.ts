// Caches a report's data for a time range until data in it is written (rule IN-13): a year is read once, and then only changes. Lives in
// the process that computes reports.
import type { ReadRows } from "../../engine/rows.ts";
import { BLOCK } from "./block.ts";
import { type Group, type Span, walkUsage } from "./walk.ts";

/** A report's data for a range. Cached parts are joined to others and never changed. */
export interface ReportPart {
  add(group: Group): void;
  /** Approximate memory size in bytes. */
  readonly weight: number;
}

/** Describes a part for the buckets [from, to). `name` identifies everything it depends on except the range and the templates. */
export type PartSpec<P extends ReportPart> = {
  readonly name: string;
  readonly details?: boolean;
  make(from: number, to: number): P;
};

/** Maximum bytes of all cached parts. */
const MAX_CACHED_BYTES = 32 * 2 ** 20;

export class PartCache {
  readonly #maxBytes: number;
  readonly #cached = new Map<string, { part: ReportPart; version: number; weight: number }>();
  #weight = 0;

  constructor(maxBytes = MAX_CACHED_BYTES) {
    this.#maxBytes = maxBytes;
  }

  /** Returns the parts of a span, consecutive and in order. */
  async load<P extends ReportPart>(read: ReadRows, span: Span, spec: PartSpec<P>): Promise<P[]> {
    const templates = span.templates ? [...span.templates].sort((a, b) => a - b).join() : "all";
    const parts: P[] = [];
    for (const [from, to] of splitSpan(span)) {
      const key = `${spec.name} ${templates} ${from} ${to}`;
      const version = await loadVersion(read, from, to);
      const cached = this.#cached.get(key);
      if (cached?.version === version) {
        this.#evict(key);
        this.#cachePart(key, cached);
        // The name implies the type of the part.
        parts.push(cached.part as P);
        continue;
      }
      const part = spec.make(from, to);
      await walkUsage(read, { ...span, from, to }, (group) => part.add(group), { details: spec.details ?? false });
      this.#evict(key);
      this.#cachePart(key, { part, version, weight: part.weight + key.length });
      parts.push(part);
    }
    return parts;
  }

  #evict(key: string): void {
    this.#weight -= this.#cached.get(key)?.weight ?? 0;
    this.#cached.delete(key);
  }

  /** Evicts the least recently used parts first. */
  #cachePart(key: string, entry: { part: ReportPart; version: number; weight: number }): void {
    this.#cached.set(key, entry);
    this.#weight += entry.weight;
    for (const oldest of this.#cached.keys()) {
      if (this.#weight <= this.#maxBytes) break;
      this.#evict(oldest);
    }
  }
}

/** Versions only increase, so their sum changes with each of them. */
const loadVersion = async (read: ReadRows, from: number, to: number): Promise<number> => {
  const sum = "select coalesce(sum(version), 0) from usage_blocks where block between ? and ?";
  const [row] = await read(sum, [Math.floor(from / BLOCK), Math.floor((to - 1) / BLOCK)]);
  return Number(row?.[0]);
};

/** Splits a span into a partial first block, whole blocks, and a separate last one, which is still changing. */
const splitSpan = ({ from, to }: Span): [from: number, to: number][] => {
  if (to <= from) return [];
  const last = Math.floor((to - 1) / BLOCK) * BLOCK;
  const first = Math.min(last, Math.ceil(from / BLOCK) * BLOCK);
  const edges = from >= last ? [from, to] : [...new Set([from, first, last, to])];
  return edges.slice(1).map((end, i) => [edges[i] as number, end]);
};
