// The store of a node that answers reads and writes nothing: another node is the active one. What that one writes it hears of a moment later, which is
// enough for streams. For answers it asks before each request (`ask`), and has versions inside of requests only.
import { isReadHere } from "#base/network/read-here.ts";
import type { Store } from "../engine/store.ts";
import type { Primary } from "./primary.ts";
import { PgReads } from "./reads.ts";
import { KnownVersions } from "./told/known-versions.ts";
import type { Listener } from "./told/listener.ts";
import type { Notice, Word } from "./told/notice.ts";
import { listCounts } from "./told/raised.ts";

export class ReadStore extends PgReads implements Store {
  /** That of no node: nothing is written with it. */
  readonly epoch = 0;
  /** Undefined until something is heard of the active node. */
  auditVersion: number | undefined;
  readonly #refuse: () => never;
  readonly #versions: KnownVersions;
  readonly #listener: Listener | undefined;
  /** Ends that it hears others. */
  #deaf: (() => void) | undefined;

  /** `refuse` throws what a write is answered with. */
  constructor(primary: Primary, refuse: () => never, listener?: Listener) {
    super(primary);
    this.#refuse = refuse;
    this.#listener = listener;
    // A connection that nothing else needs here.
    this.#versions = new KnownVersions({ connection: () => primary.writer(), lost: () => primary.lost() });
  }

  get shownVersion(): number | undefined {
    return isReadHere() ? this.#versions.shown : undefined;
  }

  get listedVersion(): number | undefined {
    return isReadHere() ? this.#versions.listed : undefined;
  }

  get callersVersion(): number | undefined {
    return isReadHere() ? this.#versions.callers : undefined;
  }

  /** Of all workspaces together: to ask for what agents of this one have written takes no less than to read it. */
  versionOf(): number | undefined {
    return this.shownVersion;
  }

  /** By the counts of each one. */
  async versionsOf(workspace_ids: readonly string[]): Promise<readonly (string | undefined)[]> {
    const listed = this.listedVersion;
    if (listed === undefined) return workspace_ids.map(() => undefined);
    const counts = new Map((await this.all(listCounts(workspace_ids))).map(({ id, version }) => [id, version]));
    return workspace_ids.map((id) => `${listed} ${counts.get(id) ?? ""}`);
  }

  /** For each request before it is answered: its versions are then those of everything that was committed before. */
  ask(): Promise<void> {
    return this.#versions.ask();
  }

  /** From now on what the active node tells is heard. `tell` gets its words, and is called without any where some may have been missed. */
  listen(tell: (words: readonly Word[] | undefined) => void): void {
    this.#deaf = this.#listener?.hear(({ audit, words = [], all }: Notice) => {
      if (audit || all) this.auditVersion = (this.auditVersion ?? 0) + 1;
      if (all || words.length > 0) tell(all ? undefined : words);
    });
  }

  async commit(): Promise<void> {
    this.#refuse();
  }

  async reserve(): Promise<number> {
    return this.#refuse();
  }

  async close(): Promise<void> {
    this.endReads();
    this.#deaf?.();
    await this.primary.close();
  }
}
