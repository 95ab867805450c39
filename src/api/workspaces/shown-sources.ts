// Which watched workspaces show something of which template, template version, user and organization. Pure bookkeeping.

/** What a workspace shows things of, by id. */
export type SourceIds = ReadonlySet<string>;

export class ShownSources<Watched extends object> {
  readonly #bySource = new Map<string, Set<Watched>>();
  readonly #sources = new Map<Watched, SourceIds>();
  #changes = 0;

  /** Raised with every change of any source: what was read at one count and registered at another may be old already. */
  get changes(): number {
    return this.#changes;
  }

  /** From now on the watched workspace shows things of these, and of no others. */
  register(watched: Watched, ids: SourceIds): void {
    const before = this.#sources.get(watched);
    if (before && before.size === ids.size && before.isSubsetOf(ids)) return;
    this.forget(watched);
    this.#sources.set(watched, ids);
    for (const id of ids) {
      const those = this.#bySource.get(id);
      if (those) those.add(watched);
      else this.#bySource.set(id, new Set([watched]));
    }
  }

  forget(watched: Watched): void {
    for (const id of this.#sources.get(watched) ?? []) {
      const those = this.#bySource.get(id);
      those?.delete(watched);
      if (those?.size === 0) this.#bySource.delete(id);
    }
    this.#sources.delete(watched);
  }

  /** A source has changed: the workspaces that show something of it. */
  changed(id: string): Iterable<Watched> {
    this.#changes += 1;
    return this.#bySource.get(id) ?? [];
  }

  /** Sources that are known; a test of leaks reads this. */
  get size(): number {
    return this.#bySource.size;
  }
}
