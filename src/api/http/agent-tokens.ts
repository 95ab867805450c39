// Which agent a token belongs to, remembered for a moment: agents send many requests a second, and looking one up costs as much as
// parsing its log lines (9 of 28 us, test/bench). What is remembered dies with `agent_gone`, at once, or after a second.

import type { Events } from "#actors/runtime/events.ts";
import type { Clock } from "#base/clock.ts";
import type { Topics } from "#base/topics.ts";
import { findAgentByToken } from "#db/agents/tokens.ts";
import type { RowOfQuery } from "#db/engine/sql.ts";
import type { Store } from "#db/engine/store.ts";

const FRESH_MS = 1_000;
const LIMIT = 10_000;

type Known = RowOfQuery<typeof findAgentByToken>;
type Entry = { readonly agent: Known; readonly until: number };

export class AgentTokens {
  readonly #entries = new Map<string, Entry>();
  /** Agent id -> hash of its token. */
  readonly #hashes = new Map<string, string>();
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #hearsOfWrites: boolean;

  constructor(parts: { store: Store; topics: Topics<Events>; clock: Clock }) {
    this.#store = parts.store;
    this.#clock = parts.clock;
    this.#hearsOfWrites = parts.store.callersVersion !== undefined;
    parts.topics.subscribeAll("agent_gone", (agent_id) => this.#forget(agent_id));
  }

  /** The agent whose token has this hash, while its build is the latest; undefined otherwise. */
  async find(token_hash: string): Promise<Known | undefined> {
    const known = this.#entries.get(token_hash);
    if (known && known.until > this.#clock.monotonic()) return known.agent;
    if (known) this.#forget(known.agent.agent_id);
    // Read in this very turn of the event loop: no commit can come between the reading and the remembering.
    const agent = await this.#store.get(findAgentByToken({ token_hash }));
    if (agent && this.#hearsOfWrites) this.#remember(token_hash, agent);
    return agent;
  }

  #remember(token_hash: string, agent: Known): void {
    const now = this.#clock.monotonic();
    this.#forget(agent.agent_id);
    // In the order in which their time ends.
    for (const old of this.#entries.values()) {
      if (old.until > now && this.#entries.size < LIMIT) break;
      this.#forget(old.agent.agent_id);
    }
    this.#entries.set(token_hash, { agent, until: now + FRESH_MS });
    this.#hashes.set(agent.agent_id, token_hash);
  }

  #forget(agent_id: string): void {
    const token_hash = this.#hashes.get(agent_id);
    if (token_hash === undefined) return;
    this.#hashes.delete(agent_id);
    this.#entries.delete(token_hash);
  }
}
