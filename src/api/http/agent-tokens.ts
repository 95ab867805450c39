// Caches which agent a token belongs to, briefly: agents send many requests a second, and a lookup costs as much as parsing the log lines
// (9 of 28 us, test/bench). An entry is evicted on `agent_gone` or after a second. In a cluster, only the node that works on the
// workspace caches it, because that node learns of `agent_gone` first.

import type { Events } from "#actors/runtime/events.ts";
import type { Clock, Timer } from "#base/clock.ts";
import type { Topics } from "#base/topics.ts";
import { findAgentByToken } from "#db/agents/tokens.ts";
import type { RowOfQuery } from "#db/engine/sql.ts";
import type { Store } from "#db/engine/store.ts";
import type { Location } from "#domain/location.ts";

const TTL_MS = 1_000;
const MAX_ENTRIES = 10_000;

type TokenAgent = RowOfQuery<typeof findAgentByToken>;
type Entry = { readonly agent: TokenAgent; readonly expiresAt: number };

type Deps = {
  readonly store: Pick<Store, "get">;
  readonly topics: Topics<Events>;
  readonly clock: Clock;
  readonly location: Pick<Location, "isHere" | "countArrivals">;
};

export class AgentTokens {
  readonly #entries = new Map<string, Entry>();
  /** Agent ID to token hash. */
  readonly #hashes = new Map<string, string>();
  readonly #store: Pick<Store, "get">;
  readonly #clock: Clock;
  readonly #location: Pick<Location, "isHere" | "countArrivals">;
  #lastArrivalCount: number | undefined;
  #sweepTimer: Timer | undefined;
  /** Number of agents that have ended so far. */
  #endCount = 0;

  constructor({ store, topics, clock, location }: Deps) {
    this.#store = store;
    this.#clock = clock;
    this.#location = location;
    for (const topic of ["agent_gone", "agent_token_renewed"] as const) {
      topics.subscribeAll(topic, (agent_id) => {
        this.#endCount++;
        this.#evict(agent_id);
      });
    }
  }

  /** Returns the agent whose token has this hash if its build is the latest; undefined otherwise. */
  async find(token_hash: string): Promise<TokenAgent | undefined> {
    const arrivalCount = this.#location.countArrivals();
    if (arrivalCount !== this.#lastArrivalCount) this.#evictAll();
    this.#lastArrivalCount = arrivalCount;
    const entry = this.#entries.get(token_hash);
    const isFresh = entry !== undefined && entry.expiresAt > this.#clock.monotonic();
    if (isFresh && this.#location.isHere(entry.agent.part)) return entry.agent;
    if (entry) this.#evict(entry.agent.agent_id);
    const earlierEndCount = this.#endCount;
    const agent = await this.#store.get(findAgentByToken({ token_hash }));
    // An agent that ended during the read must not be cached.
    const isCurrent = earlierEndCount === this.#endCount && arrivalCount === this.#location.countArrivals();
    if (agent && isCurrent && this.#location.isHere(agent.part)) this.#remember(token_hash, agent);
    return agent;
  }

  #remember(token_hash: string, agent: TokenAgent): void {
    const now = this.#clock.monotonic();
    this.#evict(agent.agent_id);
    // Entries are in the order of their expiry.
    for (const oldest of this.#entries.values()) {
      if (oldest.expiresAt > now && this.#entries.size < MAX_ENTRIES) break;
      this.#evict(oldest.agent.agent_id);
    }
    this.#entries.set(token_hash, { agent, expiresAt: now + TTL_MS });
    this.#hashes.set(agent.agent_id, token_hash);
    this.#sweepTimer ??= this.#clock.after(TTL_MS, () => this.#sweep());
  }

  /** Evicts expired entries even if no new ones arrive. */
  #sweep(): void {
    const now = this.#clock.monotonic();
    for (const { agent, expiresAt } of this.#entries.values()) {
      if (expiresAt > now) break;
      this.#evict(agent.agent_id);
    }
    this.#sweepTimer = this.#entries.size > 0 ? this.#clock.after(TTL_MS, () => this.#sweep()) : undefined;
  }

  #evictAll(): void {
    this.#entries.clear();
    this.#hashes.clear();
  }

  #evict(agent_id: string): void {
    const token_hash = this.#hashes.get(agent_id);
    if (token_hash === undefined) return;
    this.#hashes.delete(agent_id);
    this.#entries.delete(token_hash);
  }
}
