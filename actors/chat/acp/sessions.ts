// The running coding agents, one per chat. They outlive turns, so that an agent can wait for the answer to its question, and the next
// message needs no new start. An idle agent is stopped; the next turn loads its session again.
import type { Clock, Timer } from "#base/clock.ts";
import type { IsLeaving } from "#db/own-rows.ts";
import type { ToolAgent } from "#src/tools/tool.ts";
import { AgentSession, type OpenSession } from "./session.ts";

/** An idle agent is stopped after this time, because it uses several hundred megabytes of memory. */
const IDLE_TIMEOUT_MS = 15 * 60_000;

type Entry = {
  readonly part: number;
  readonly opened: Promise<AgentSession>;
  session?: AgentSession;
  idleTimer?: Timer;
};

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

  /** Opens a session, or returns the one that is open or being opened. Rejects with a readable message. */
  async open(part: number, agent: ToolAgent, requested: OpenSession): Promise<AgentSession> {
    const { chat_id } = requested;
    const existing = this.#entries.get(chat_id);
    if (existing && !existing.session?.isGone) return existing.opened;
    const entry: Entry = { part, opened: AgentSession.open({ clock: this.#clock, agent }, requested) };
    this.#entries.set(chat_id, entry);
    try {
      entry.session = await entry.opened;
      // `end` was called while the session was being opened.
      if (this.#entries.get(chat_id) !== entry) entry.session.end();
      return entry.session;
    } catch (error) {
      if (this.#entries.get(chat_id) === entry) this.#entries.delete(chat_id);
      throw error;
    }
  }

  /** Keeps the session open while a turn uses it. */
  markUsed(chat_id: string): void {
    this.#entries.get(chat_id)?.idleTimer?.cancel();
  }

  /** Ends the session after the idle timeout, unless a turn uses it again. */
  markIdle(chat_id: string): void {
    const entry = this.#entries.get(chat_id);
    if (!entry) return;
    entry.idleTimer?.cancel();
    entry.idleTimer = this.#clock.after(IDLE_TIMEOUT_MS, () => this.end(chat_id));
  }

  end(chat_id: string): void {
    const entry = this.#entries.get(chat_id);
    this.#entries.delete(chat_id);
    entry?.idleTimer?.cancel();
    entry?.session?.end();
  }

  release(isLeaving: IsLeaving): void {
    for (const [chat_id, { part }] of this.#entries) if (isLeaving(part)) this.end(chat_id);
  }
}
