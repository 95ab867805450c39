// Serves all watchers of agent metadata. Each watched agent has one timer and one read, however many clients watch it. Each watcher is
// notified at most once a second, and at least every 5 s because results age (facts/platform 5.8, rules MD-1 to MD-3).
import type { Timer } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { hideSecretTexts } from "#base/secrets/template-secrets.ts";
import { listAgentMetadata } from "#db/agents/metadata.ts";
import { presentMetadata } from "#domain/agents/present.ts";
import type { ApiContext } from "../context.ts";

export interface MetadataWatcher {
  /** Receives all of the agent's metadata as one line of JSON. */
  onData(json: string): void;
  /** Called when the metadata cannot be read; the read is retried. */
  onError(): void;
  /** Called when a newer build has replaced the agent, so its metadata does not change anymore. */
  onReplaced(): void;
}

const CHECK_INTERVAL_MS = 1_000;
const RESEND_INTERVAL_MS = 5_000;

export class MetadataWatchers {
  readonly #ctx: ApiContext;
  readonly #watchedAgents = new Map<string, WatchedAgent>();

  constructor(ctx: ApiContext) {
    this.#ctx = ctx;
  }

  /** Sends everything to the watcher now, and again on changes and at intervals, until the returned function is called. */
  watch(agent_id: string, watcher: MetadataWatcher): () => void {
    const watched = this.#watchedAgents.get(agent_id) ?? new WatchedAgent(this.#ctx, agent_id);
    this.#watchedAgents.set(agent_id, watched);
    watched.add(watcher);
    return () => {
      if (watched.remove(watcher) && this.#watchedAgents.get(agent_id) === watched)
        this.#watchedAgents.delete(agent_id);
    };
  }
}

/** When a watcher was last notified, and of which change. */
type LastSent = { at: number; change: number };

class WatchedAgent {
  readonly #ctx: ApiContext;
  readonly #agentId: string;
  readonly #lastSent = new Map<MetadataWatcher, LastSent>();
  readonly #timer: Timer;
  readonly #unsubscribes: (() => void)[];
  #change = 0;

  constructor(ctx: ApiContext, agent_id: string) {
    this.#ctx = ctx;
    this.#agentId = agent_id;
    this.#timer = ctx.clock.every(CHECK_INTERVAL_MS, () => this.#tick());
    this.#unsubscribes = [
      ctx.topics.subscribe("agent_metadata", agent_id, () => {
        this.#change++;
      }),
      ctx.topics.subscribe("agent_gone", agent_id, () => {
        for (const watcher of [...this.#lastSent.keys()]) watcher.onReplaced();
      }),
    ];
  }

  add(watcher: MetadataWatcher): void {
    this.#lastSent.set(watcher, { at: 0, change: 0 });
    void this.#notify([watcher]);
  }

  /** Returns true when no watchers are left. */
  remove(watcher: MetadataWatcher): boolean {
    this.#lastSent.delete(watcher);
    if (this.#lastSent.size > 0) return false;
    this.#timer.cancel();
    for (const unsubscribe of this.#unsubscribes.splice(0)) unsubscribe();
    return true;
  }

  #tick(): void {
    const now = this.#ctx.clock.monotonic();
    const due = [...this.#lastSent].filter(
      ([, { at, change }]) => now - at >= (change < this.#change ? CHECK_INTERVAL_MS : RESEND_INTERVAL_MS),
    );
    if (due.length > 0) void this.#notify(due.map(([watcher]) => watcher));
  }

  async #notify(watchers: readonly MetadataWatcher[]): Promise<void> {
    const sent = { at: this.#ctx.clock.monotonic(), change: this.#change };
    for (const watcher of watchers) this.#lastSent.set(watcher, sent);
    const json = await this.#read();
    for (const watcher of watchers) {
      if (!this.#lastSent.has(watcher)) continue;
      if (json === undefined) watcher.onError();
      else watcher.onData(json);
    }
  }

  async #read(): Promise<string | undefined> {
    try {
      const rows = await this.#ctx.store.all(listAgentMetadata({ agent_id: this.#agentId }));
      const now = this.#ctx.clock.now();
      const hide = hideSecretTexts(this.#ctx.encryption);
      return JSON.stringify(rows.map((row) => presentMetadata(row, now, hide)));
    } catch (error) {
      log("watch").warn("metadata of agent {id} cannot be read: {error}", { id: this.#agentId, error });
      return undefined;
    }
  }
}
