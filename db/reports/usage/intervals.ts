// Distinct users per day or week, and their templates (facts/platform 6.2). For the insights reports.
import { hasBitIn } from "./block.ts";
import type { ReportPart } from "./parts.ts";
import type { Group, UsageRow } from "./walk.ts";

/** Interval `from + n` has the positions [lows[n], ends[n]) in the block that begins at `start`. */
type Windows = { start: number; from: number; lows: readonly number[]; ends: readonly number[] };

export class Intervals implements ReportPart {
  readonly #edges: readonly number[];
  readonly #users: Uint32Array;
  /** Maps a template to 1 for each interval in which it was used. */
  readonly #marks = new Map<number, Uint8Array>();
  /** Maps a user to the last interval in which they were counted. Blocks arrive in order, and an interval may span two. */
  readonly #counted = new Map<number, number>();
  /** The intervals at both ends and their counted users, because a neighboring part may share them. */
  readonly #first: number;
  readonly #last: number;
  readonly #usersInFirst = new Set<number>();
  readonly #usersInLast: Set<number>;

  #windows: Windows = { start: -1, from: 0, lows: [], ends: [] };

  /** Intervals are between edges, in buckets; covers the buckets from `from` to `to`. */
  constructor(edges: readonly number[], from: number, to: number) {
    this.#edges = edges;
    this.#users = new Uint32Array(Math.max(0, edges.length - 1));
    this.#first = this.#findIndex(from);
    this.#last = this.#findIndex(to - 1);
    this.#usersInLast = this.#first === this.#last ? this.#usersInFirst : new Set();
  }

  get weight(): number {
    const people = this.#counted.size + this.#usersInFirst.size + this.#usersInLast.size;
    return this.#users.length * (4 + this.#marks.size) + people * 32 + this.#edges.length * 8;
  }

  add({ user, start, high, rows }: Group): void {
    const { from, lows, ends } = this.#makeWindows(start, high);
    const marks = rows.map(({ template }) => this.#makeMarks(template));
    let counted = this.#counted.get(user) ?? -1;
    for (let n = 0; n < lows.length; n++) {
      const [i, low, end] = [from + n, lows[n] as number, ends[n] as number];
      for (let r = 0; r < rows.length; r++) {
        if (!hasBitIn((rows[r] as UsageRow).digest.bits, low, end)) continue;
        (marks[r] as Uint8Array)[i] = 1;
        if (counted >= i) continue;
        counted = i;
        this.#users[i] = (this.#users[i] as number) + 1;
        if (i === this.#first) this.#usersInFirst.add(user);
        if (i === this.#last) this.#usersInLast.add(user);
      }
    }
    this.#counted.set(user, counted);
  }

  /** Returns the intervals' positions in a block, reused for its consecutive groups. */
  #makeWindows(start: number, high: number): Windows {
    if (this.#windows.start === start) return this.#windows;
    const from = this.#findIndex(start);
    const [lows, ends]: [number[], number[]] = [[], []];
    for (let i = from; i < this.#users.length; i++) {
      const low = (this.#edges[i] as number) - start;
      if (low >= high) break;
      lows.push(Math.max(0, low));
      ends.push(Math.min(high, (this.#edges[i + 1] as number) - start));
    }
    this.#windows = { start, from, lows, ends };
    return this.#windows;
  }

  #makeMarks(template: number): Uint8Array {
    let marks = this.#marks.get(template);
    if (!marks) {
      marks = new Uint8Array(this.#users.length);
      this.#marks.set(template, marks);
    }
    return marks;
  }

  /** Returns the interval that contains a bucket, or the first after it. */
  #findIndex(bucket: number): number {
    let [low, high] = [0, this.#users.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#edges[middle + 1] as number) <= bucket) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Joins users and templates of each interval over consecutive parts. A user in two parts counts once. */
  static joinParts(parts: readonly Intervals[]): { users: number; templates: Set<number> }[] {
    const length = parts[0] === undefined ? 0 : parts[0].#users.length;
    const all = Array.from({ length }, () => ({ users: 0, templates: new Set<number>() }));
    let last = -1;
    let usersInLast: ReadonlySet<number> = new Set();
    for (const part of parts) {
      for (const [i, interval] of all.entries()) {
        interval.users += part.#users[i] as number;
        for (const [template, marks] of part.#marks) if (marks[i] === 1) interval.templates.add(template);
      }
      const shared = all[part.#first];
      if (shared && part.#first === last)
        for (const user of part.#usersInFirst) if (usersInLast.has(user)) shared.users -= 1;
      usersInLast = part.#last === last ? usersInLast.union(part.#usersInLast) : part.#usersInLast;
      last = part.#last;
    }
    return all;
  }
}
