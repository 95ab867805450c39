// What a report takes from a stretch of time, kept in memory and taken again until something of it is written (rule IN-13): a year is
// read once, and then only what changes. Lives where reports are computed.
import type { Rows } from "../../engine/rows.ts";
import { BLOCK } from "./block.ts";
import { type Group, type Span, walk } from "./walk.ts";

/** What a report has gathered from a stretch. Kept ones are joined to others and never changed. */
export interface Part {
  add(group: Group): void;
  /** About how many bytes of memory it takes. */
  readonly weight: number;
}

/** A part for the buckets [from, to). `name` tells apart all that it depends on besides the stretch and the templates. */
export type Wanted<P extends Part> = {
  readonly name: string;
  readonly details?: boolean;
  make(from: number, to: number): P;
};

/** Bytes of all kept parts together. */
const MOST = 32 * 2 ** 20;

export class Deps {
  readonly #most: number;
  readonly #kept = new Map<string, { part: Part; version: number; weight: number }>();
  #weight = 0;

  constructor(most = MOST) {
    this.#most = most;
  }

  /** The parts of a span, in the order of time and each beginning where the one before it ends. */
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
        // The name says what kind of part it is.
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

  /** The ones that were wanted longest ago go first. */
  #keep(key: string, one: { part: Part; version: number; weight: number }): void {
    this.#kept.set(key, one);
    this.#weight += one.weight;
    for (const oldest of this.#kept.keys()) {
      if (this.#weight <= this.#most) break;
      this.#forget(oldest);
    }
  }
}

/** Versions only grow, so that their sum changes with each of them. */
const loadVersion = async (read: Rows, from: number, to: number): Promise<number> => {
  const sum = "select coalesce(sum(version), 0) from usage_blocks where block between ? and ?";
  const [row] = await read(sum, [Math.floor(from / BLOCK), Math.floor((to - 1) / BLOCK)]);
  return Number(row?.[0]);
};

/** The block in which it begins, if not with it; whole blocks; and the last on its own, since people work in it now. */
const cut = ({ from, to }: Span): [from: number, to: number][] => {
  if (to <= from) return [];
  const last = Math.floor((to - 1) / BLOCK) * BLOCK;
  const first = Math.min(last, Math.ceil(from / BLOCK) * BLOCK);
  const edges = from >= last ? [from, to] : [...new Set([from, first, last, to])];
  return edges.slice(1).map((end, i) => [edges[i] as number, end]);
};
