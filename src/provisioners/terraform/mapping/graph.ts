// The dependency graph from `terraform graph` (DOT); labels are addresses without indexes (facts/terraform 3.2). Pure.

/** Maximum number of edges that are followed: a real template's graph is small, a hostile one may not be. */
const MAX_NODES = 50_000;

export class Graph {
  readonly #labels = new Map<string, string>();
  readonly #byLabel = new Map<string, string>();
  readonly #needs = new Map<string, string[]>();
  readonly #neededBy = new Map<string, string[]>();

  /** Parses node and edge lines and ignores the rest. */
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

  /** Returns true if any node's label matches. */
  has(fits: (label: string) => boolean): boolean {
    return [...this.#byLabel.keys()].some(fits);
  }

  /** Returns the nearest matching dependency of the node `label`, by fewest edges, then by name; undefined if none matches. */
  findNearestNeeded(label: string, fits: (label: string) => boolean): string | undefined {
    return this.#findNearest(label, this.#needs, fits);
  }

  /** Returns the nearest matching dependent of the node `label`. */
  findNearestUser(label: string, fits: (label: string) => boolean): string | undefined {
    return this.#findNearest(label, this.#neededBy, fits);
  }

  #findNearest(
    label: string,
    edges: ReadonlyMap<string, readonly string[]>,
    fits: (label: string) => boolean,
  ): string | undefined {
    const start = this.#byLabel.get(label);
    if (start === undefined) return undefined;
    const seen = new Set([start]);
    for (let ring = [start]; ring.length > 0 && seen.size < MAX_NODES; ) {
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
