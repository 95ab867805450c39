// Tracks which watched workspaces show data of which template, template version, user and organization.

/** IDs of the resources that a workspace shows data of. */
export type SourceIds = ReadonlySet<string>;

export class SourceIndex<Watched extends object> {
  readonly #bySource = new Map<string, Set<Watched>>();
  readonly #sources = new Map<Watched, SourceIds>();
  #changeCount = 0;

  /** Incremented with every change of any source. If it has changed between reading data and registering its sources, the data may be stale. */
  get changeCount(): number {
    return this.#changeCount;
  }

  /** Replaces the sources of a watched workspace. */
  register(watched: Watched, ids: SourceIds): void {
    const previous = this.#sources.get(watched);
    if (previous && previous.size === ids.size && previous.isSubsetOf(ids)) return;
    this.unregister(watched);
    this.#sources.set(watched, ids);
    for (const id of ids) {
      const watchers = this.#bySource.get(id);
      if (watchers) watchers.add(watched);
      else this.#bySource.set(id, new Set([watched]));
    }
  }

  unregister(watched: Watched): void {
    for (const id of this.#sources.get(watched) ?? []) {
      const watchers = this.#bySource.get(id);
      watchers?.delete(watched);
      if (watchers?.size === 0) this.#bySource.delete(id);
    }
    this.#sources.delete(watched);
  }

  /** Returns the workspaces that show data of a changed source. */
  noteChanged(id: string): Iterable<Watched> {
    this.#changeCount += 1;
    return this.#bySource.get(id) ?? [];
  }

  /** Returns the number of known sources, for leak tests. */
  get size(): number {
    return this.#bySource.size;
  }
}
