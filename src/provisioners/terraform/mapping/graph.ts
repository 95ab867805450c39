// Parses the dependency graph that `terraform graph` prints in DOT. Labels are addresses without indexes (facts/terraform 3.2). Pure.

/** Maximum number of nodes that a search visits, because a hostile template may have a large graph. */
const MAX_NODES = 50_000;

export class Graph {
  readonly #labels = new Map<string, string>();
  readonly #byLabel = new Map<string, string>();
  readonly #needs = new Map<string, string[]>();
  readonly #neededBy = new Map<string, string[]>();

  /** Parses the lines of nodes and edges, and ignores neighbor lines. */
  constructor(dot: string) {
    for (const line of dot.split("\n")) {
      const [, from, to, label] =
        /^\s*"((?:[^"\\]|\\.)*)"\s*(?:->\s*"((?:[^"\\]|\\.)*)"|\[label = "((?:[^"\\]|\\.)*)")/.exec(line) ?? [];
      if (from === undefined) continue;
      if (label !== undefined) {
        this.#labels.set(from, label);
        this.#byLabel.set(label, from);
      } else if (to !== undefined) {
        addToList(this.#needs, from, to);
        addToList(this.#neededBy, to, from);
      }
    }
  }

  /** Returns true if any node's label matches. */
  has(matches: (label: string) => boolean): boolean {
    return [...this.#byLabel.keys()].some(matches);
  }

  /** Returns the nearest matching dependency of the node `label`, by fewest edges, then by name; undefined if none matches. */
  findNearestDependency(label: string, matches: (label: string) => boolean): string | undefined {
    return this.#findNearest(label, this.#needs, matches);
  }

  /** Returns the nearest matching dependent of the node `label`. */
  findNearestDependent(label: string, matches: (label: string) => boolean): string | undefined {
    return this.#findNearest(label, this.#neededBy, matches);
  }

  #findNearest(
    label: string,
    edges: ReadonlyMap<string, readonly string[]>,
    matches: (label: string) => boolean,
  ): string | undefined {
    const start = this.#byLabel.get(label);
    if (start === undefined) return undefined;
    const seen = new Set([start]);
    for (let frontier = [start]; frontier.length > 0 && seen.size < MAX_NODES; ) {
      const next: string[] = [];
      for (const node of frontier) {
        for (const neighbor of edges.get(node) ?? []) {
          if (seen.has(neighbor)) continue;
          seen.add(neighbor);
          next.push(neighbor);
        }
      }
      const found = next.flatMap((node) => this.#labels.get(node) ?? []).filter(matches);
      if (found.length > 0) return found.sort()[0];
      frontier = next;
    }
    return undefined;
  }
}

const addToList = (map: Map<string, string[]>, key: string, value: string): void => {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
};
