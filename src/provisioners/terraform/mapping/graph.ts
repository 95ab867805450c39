// The graph that `terraform graph` prints (DOT), as who needs whom; labels are addresses without indices (facts/terraform 3.2). Pure.

/** Edges are followed this far at most: a graph of a template is small, a hostile one is not. */
const NODE_LIMIT = 50_000;

export class Graph {
  readonly #labels = new Map<string, string>();
  readonly #byLabel = new Map<string, string>();
  readonly #needs = new Map<string, string[]>();
  readonly #neededBy = new Map<string, string[]>();

  /** Reads the lines of nodes and edges and passes over the rest. */
  constructor(dot: string) {
    for (const line of dot.split("\n")) {
      const [, from, to, label] =
        /^\s*"((?:[^"\\]|\\.)*)"\s*(?:->\s*"((?:[^"\\]|\\.)*)"|\[label = "((?:[^"\\]|\\.)*)")/.exec(line) ?? [];
      if (from === undefined) continue;
      if (label !== undefined) {
        this.#labels.set(from, label);
        this.#byLabel.set(label, from);
      } else if (to !== undefined) {
        push(this.#needs, from, to);
        push(this.#neededBy, to, from);
      }
    }
  }

  /** Whether some node has a label that fits. */
  has(fits: (label: string) => boolean): boolean {
    return [...this.#byLabel.keys()].some(fits);
  }

  /** The nearest label among what the node of `label` needs, by fewest edges, then by name; undefined when none fits. */
  nearestNeeded(label: string, fits: (label: string) => boolean): string | undefined {
    return this.#nearest(label, this.#needs, fits);
  }

  /** The nearest label among what needs the node of `label`. */
  nearestUser(label: string, fits: (label: string) => boolean): string | undefined {
    return this.#nearest(label, this.#neededBy, fits);
  }

  #nearest(
    label: string,
    edges: ReadonlyMap<string, readonly string[]>,
    fits: (label: string) => boolean,
  ): string | undefined {
    const start = this.#byLabel.get(label);
    if (start === undefined) return undefined;
    const seen = new Set([start]);
    for (let ring = [start]; ring.length > 0 && seen.size < NODE_LIMIT; ) {
      const next: string[] = [];
      for (const node of ring) {
        for (const other of edges.get(node) ?? []) {
          if (seen.has(other)) continue;
          seen.add(other);
          next.push(other);
        }
      }
      const found = next.flatMap((node) => this.#labels.get(node) ?? []).filter(fits);
      if (found.length > 0) return found.sort()[0];
      ring = next;
    }
    return undefined;
  }
}

const push = (map: Map<string, string[]>, key: string, value: string): void => {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
};
