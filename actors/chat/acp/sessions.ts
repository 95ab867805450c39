// The running coding agents, one per chat. They outlive turns, so that a question can be answered later and the next message starts without
// delay. An idle agent is stopped; its session is loaded again on demand.
import type { Clock, Timer } from "#base/clock.ts";
import type { IsLeaving } from "#db/own-rows.ts";
import type { ToolAgent } from "#src/tools/tool.ts";
import { AgentSession, type OpenSession } from "./session.ts";

/** An idle agent is stopped after this time, because it uses several hundred megabytes of memory. */
const IDLE_TIMEOUT_MS = 15 * 60_000;

type Entry = { readonly part: number; readonly opened: Promise<AgentSession>; session?: AgentSession; idle?: Timer };

export class AgentSessions {
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns the chat's session if one is open and its agent is running. */
  findSession(chat_id: string): AgentSession | undefined {
    const session = this.#entries.get(chat_id)?.session;
    return session?.isGone ? undefined : session;
  }

  /** Returns the chats whose agents are running or starting. */
  chats(): string[] {
    return [...this.#entries.keys()];
  }

  /** Opens a session, or waits for the one being opened. Rejects with a readable message. */
  async open(part: number, agent: ToolAgent, requested: OpenSession): Promise<AgentSession> {
    const { chat_id } = requested;
    const existing = this.#entries.get(chat_id);
    if (existing && !existing.session?.isGone) return existing.opened;
    const entry: Entry = { part, opened: AgentSession.open({ clock: this.#clock, agent }, requested) };
    this.#entries.set(chat_id, entry);
    try {
      entry.session = await entry.opened;
      if (this.#entries.get(chat_id) !== entry) entry.session.end();
      return entry.session;
    } catch (error) {
      if (this.#entries.get(chat_id) === entry) this.#entries.delete(chat_id);
      throw error;
    }
  }

  /** Marks the session as used by a turn, so that it does not time out. */
  markUsed(chat_id: string): void {
    this.#entries.get(chat_id)?.idle?.cancel();
  }

  /** Marks the session as idle. It ends after the idle timeout. */
  markIdle(chat_id: string): void {
    const entry = this.#entries.get(chat_id);
    if (!entry) return;
    entry.idle?.cancel();
    entry.idle = this.#clock.after(IDLE_TIMEOUT_MS, () => this.end(chat_id));
  }

  end(chat_id: string): void {
    const entry = this.#entries.get(chat_id);
    this.#entries.delete(chat_id);
    entry?.idle?.cancel();
    entry?.session?.end();
  }

  release(isLeaving: IsLeaving): void {
    for (const [chat_id, { part }] of this.#entries) if (isLeaving(part)) this.end(chat_id);
  }
}
