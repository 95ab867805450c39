// The store of a node that only reads, while another node is active. Notices about that node's writes arrive a moment later, which is
// sufficient for streams. For answers, the store checks the versions before each request (`refreshVersions`), and has versions only during
// requests.
import { isLocalRead } from "#base/network/local-reads.ts";
import type { Store } from "../engine/store.ts";
import { listCounts } from "./notices/counters.ts";
import { KnownVersions } from "./notices/known-versions.ts";
import type { Listener } from "./notices/listener.ts";
import type { BroadcastEvent, Notice } from "./notices/notice.ts";
import type { Primary } from "./primary.ts";
import { PgReads } from "./reads.ts";

export class ReadStore extends PgReads implements Store {
  /** Not an epoch of a node, because the store never writes. */
  readonly epoch = 0;
  /** Undefined until the first notice of the active node. */
  auditVersion: number | undefined;
  readonly #rejectWrite: () => never;
  readonly #versions: KnownVersions;
  readonly #listener: Listener | undefined;
  /** Unsubscribes from other nodes. */
  #unsubscribe: (() => void) | undefined;

  /** `rejectWrite` throws the answer to a write. */
  constructor(primary: Primary, rejectWrite: () => never, listener?: Listener) {
    super(primary);
    this.#rejectWrite = rejectWrite;
    this.#listener = listener;
    // The listener is the only user of the writer's connection in this store.
    this.#versions = new KnownVersions({ connection: () => primary.writer(), lost: () => primary.dropConnections() });
  }

  get shownVersion(): number | undefined {
    return isLocalRead() ? this.#versions.shown : undefined;
  }

  get listedVersion(): number | undefined {
    return isLocalRead() ? this.#versions.listed : undefined;
  }

  get callersVersion(): number | undefined {
    return isLocalRead() ? this.#versions.callers : undefined;
  }

  /** Returns one version for all workspaces, because reading the version of one workspace would cost as much as reading the workspace. */
  getVersion(): number | undefined {
    return this.shownVersion;
  }

  /** Returns the individual versions. */
  async loadVersions(workspace_ids: readonly string[]): Promise<readonly (string | undefined)[]> {
    const listed = this.listedVersion;
    if (listed === undefined) return workspace_ids.map(() => undefined);
    const counts = new Map((await this.all(listCounts(workspace_ids))).map(({ id, version }) => [id, version]));
    return workspace_ids.map((id) => `${listed} ${counts.get(id) ?? ""}`);
  }

  /** Called for each request before it is answered, so that its versions cover everything committed before. */
  refreshVersions(): Promise<void> {
    return this.#versions.refresh();
  }

  /** Subscribes to events of the active node. `onEvents` is called without events when some may have been missed. */
  listen(onEvents: (events: readonly BroadcastEvent[] | undefined) => void): void {
    this.#unsubscribe = this.#listener?.subscribe(({ audit, words = [], all }: Notice) => {
      if (audit || all) this.auditVersion = (this.auditVersion ?? 0) + 1;
      if (all || words.length > 0) onEvents(all ? undefined : words);
    });
  }

  async commit(): Promise<void> {
    this.#rejectWrite();
  }

  async reserve(): Promise<number> {
    return this.#rejectWrite();
  }

  async close(): Promise<void> {
    this.endReads();
    this.#unsubscribe?.();
    await this.primary.close();
  }
}
