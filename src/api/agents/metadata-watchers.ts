// Serves all watchers of agent metadata. Each watched agent has one timer and one read, however many clients watch it. Each watcher is
// notified at most once a second, and at least every 5 s because results age (facts/platform 5.8, rules MD-1 to MD-3).
import type { Timer } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { openSecretTexts } from "#base/template-secrets.ts";
import { listAgentMetadata } from "#db/agents/metadata.ts";
import { presentMetadata } from "#domain/agents/present.ts";
import type { ApiContext } from "../context.ts";

export interface MetadataWatcher {
  /** Receives all of the agent's metadata as one line of JSON. */
  data(json: string): void;
  /** Called when the metadata cannot be read; the read is retried. */
  failed(): void;
  /** Called when a newer build has taken over, so nothing changes any more. */
  gone(): void;
}

const OFTEN_MS = 1_000;
const SELDOM_MS = 5_000;

export class MetadataWatchers {
  readonly #ctx: ApiContext;
  readonly #watched = new Map<string, Watched>();

  constructor(ctx: ApiContext) {
    this.#ctx = ctx;
  }

  /** Sends everything to the watcher now, and again on changes and at intervals, until the returned function is called. */
  watch(agent_id: string, watcher: MetadataWatcher): () => void {
    let watched = this.#watched.get(agent_id);
    if (!watched) {
      watched = new Watched(this.#ctx, agent_id);
      this.#watched.set(agent_id, watched);
    }
    const one = watched;
    one.add(watcher);
    return () => {
      if (one.remove(watcher) && this.#watched.get(agent_id) === one) this.#watched.delete(agent_id);
    };
  }
}

/** When a watcher was last notified, and of which change. */
type Sent = { at: number; change: number };

class Watched {
  readonly #ctx: ApiContext;
  readonly #agentId: string;
  readonly #sent = new Map<MetadataWatcher, Sent>();
  readonly #timer: Timer;
  readonly #leave: (() => void)[];
  #change = 0;

  constructor(ctx: ApiContext, agent_id: string) {
    this.#ctx = ctx;
    this.#agentId = agent_id;
    this.#timer = ctx.clock.every(OFTEN_MS, () => this.#tick());
    this.#leave = [
      ctx.topics.subscribe("agent_metadata", agent_id, () => {
        this.#change++;
      }),
      ctx.topics.subscribe("agent_gone", agent_id, () => {
        for (const watcher of [...this.#sent.keys()]) watcher.gone();
      }),
    ];
  }

  add(watcher: MetadataWatcher): void {
    this.#sent.set(watcher, { at: 0, change: 0 });
    void this.#tell([watcher]);
  }

  /** Returns true when no watchers are left. */
  remove(watcher: MetadataWatcher): boolean {
    this.#sent.delete(watcher);
    if (this.#sent.size > 0) return false;
    this.#timer.cancel();
    for (const leave of this.#leave.splice(0)) leave();
    return true;
  }

  #tick(): void {
    const now = this.#ctx.clock.monotonic();
    const due = [...this.#sent].filter(
      ([, { at, change }]) => now - at >= (change < this.#change ? OFTEN_MS : SELDOM_MS),
    );
    if (due.length > 0) void this.#tell(due.map(([watcher]) => watcher));
  }

  async #tell(watchers: readonly MetadataWatcher[]): Promise<void> {
    const sent = { at: this.#ctx.clock.monotonic(), change: this.#change };
    for (const watcher of watchers) this.#sent.set(watcher, sent);
    const json = await this.#read();
    for (const watcher of watchers) {
      if (!this.#sent.has(watcher)) continue;
      if (json === undefined) watcher.failed();
      else watcher.data(json);
    }
  }

  async #read(): Promise<string | undefined> {
    try {
      const rows = await this.#ctx.store.all(listAgentMetadata({ agent_id: this.#agentId }));
      const now = this.#ctx.clock.now();
      const open = openSecretTexts(this.#ctx.encryption, this.#agentId);
      return JSON.stringify(rows.map((row) => presentMetadata(row, now, open)));
    } catch (error) {
      log("watch").warn("metadata of agent {id} cannot be read: {error}", { id: this.#agentId, error });
      return undefined;
    }
  }
}
