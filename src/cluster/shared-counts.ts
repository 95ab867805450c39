// Rate limits across all nodes: each node sends its counts for the current minute to the others once a second, and decides by the sum of
// its own and the received counts. Within one second, each of several nodes may allow the remaining requests of a limit [CP-69].
import type { Clock, Timer } from "#base/clock.ts";
import { listOtherNodes, type Shards } from "#base/shards.ts";
import type { NodeLinks } from "./node-link.ts";

const SERVICE = "counts";
const SEND_INTERVAL_MS = 1_000;
/** Maximum keys of one counter that are sent. The largest counts are sent, because the smallest matter least for a limit. */
const MAX_KEYS = 2_000;
const MINUTE_MS = 60_000;

/** A counter by key within a time window. */
export interface Counting {
  /** Counts of the current window. */
  readonly counts: ReadonlyMap<string, number>;
  /** Milliseconds until the window ends. */
  readonly left_ms: number;
}

type SentCounts = readonly {
  readonly kind: string;
  readonly left_ms: number;
  readonly counts: readonly (readonly [string, number])[];
}[];
type ReceivedCounts = { readonly kind: string; readonly until: number; readonly counts: ReadonlyMap<string, number> };

type Deps = {
  readonly clock: Clock;
  readonly shards: Shards;
  readonly links: Pick<NodeLinks, "call" | "serve">;
};

export class SharedCounts {
  readonly #deps: Deps;
  readonly #counters: { readonly kind: string; readonly counting: Counting }[] = [];
  readonly #received = new Map<string, readonly ReceivedCounts[]>();
  /** The nodes that have not acknowledged the last counts yet. */
  readonly #pendingNodes = new Set<string>();
  readonly #sendTimer: Timer;

  constructor(deps: Deps) {
    this.#deps = deps;
    deps.links.serve(SERVICE, async (message, from) => this.#onCounts(from, message as SentCounts));
    this.#sendTimer = deps.clock.every(SEND_INTERVAL_MS, () => this.#sendCounts());
  }

  /** Stops sending. */
  stop(): void {
    this.#sendTimer.cancel();
  }

  /** Shares a counter with the other nodes. The returned function returns the count of a key in all other counters of this kind. */
  join(kind: string, counting: Counting): (key: string) => number {
    this.#counters.push({ kind, counting });
    return (key) => {
      const now = this.#deps.clock.monotonic();
      let sum = 0;
      // A node has two counters of a kind: one for the reads of its read server, and one for requests to its shards.
      for (const own of this.#counters)
        if (own.kind === kind && own.counting !== counting && own.counting.left_ms > 0)
          sum += own.counting.counts.get(key) ?? 0;
      for (const counters of this.#received.values())
        for (const other of counters) if (other.kind === kind && other.until > now) sum += other.counts.get(key) ?? 0;
      return sum;
    };
  }

  #onCounts(from: string, message: SentCounts): void {
    const now = this.#deps.clock.monotonic();
    const received = message.map(({ kind, left_ms, counts }) => ({
      kind,
      until: now + Math.min(left_ms, MINUTE_MS),
      counts: new Map(counts.slice(0, MAX_KEYS)),
    }));
    this.#received.set(from, received);
  }

  #sendCounts(): void {
    const { shards, links } = this.#deps;
    const message: SentCounts = this.#counters
      .filter(({ counting }) => counting.counts.size > 0 && counting.left_ms > 0)
      .map(({ kind, counting: { counts, left_ms } }) => ({ kind, left_ms, counts: selectLargest(counts) }));
    const others = listOtherNodes(shards);
    for (const id of [...this.#received.keys()]) if (!others.some((node) => node.id === id)) this.#received.delete(id);
    if (message.length === 0) return;
    for (const node of others) {
      // A slow node gets a later message instead, because counts are totals and not increments.
      if (this.#pendingNodes.has(node.id)) continue;
      this.#pendingNodes.add(node.id);
      links
        .call(node, SERVICE, message)
        .catch(() => {})
        .finally(() => this.#pendingNodes.delete(node.id));
    }
  }
}

const selectLargest = (counts: ReadonlyMap<string, number>): (readonly [string, number])[] =>
  counts.size <= MAX_KEYS ? [...counts] : [...counts].sort(([, a], [, b]) => b - a).slice(0, MAX_KEYS);
