// The coding agents that run for chats now, one for each chat. They outlive turns, so that a question can be answered later and the next
// message needs no start; one that nobody writes to for a while is ended, and its session loaded again when it is needed.
import type { Clock, Timer } from "#base/clock.ts";
import type { ToolAgent } from "#src/tools/tool.ts";
import { AgentSession, type OpenSession } from "./session.ts";

/** An agent takes some hundred megabytes. */
const IDLE_MS = 15 * 60_000;

type Entry = { readonly part: number; readonly opened: Promise<AgentSession>; session?: AgentSession; idle?: Timer };

export class AgentSessions {
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The session of this chat, where one is open and its agent runs. */
  of(chat_id: string): AgentSession | undefined {
    const session = this.#entries.get(chat_id)?.session;
    return session?.isGone ? undefined : session;
  }

  /** The chats whose agents run or are being started. */
  chats(): string[] {
    return [...this.#entries.keys()];
  }

  /** Opens a session, or waits for the one that is being opened. Rejects in words. */
  async open(part: number, agent: ToolAgent, asked: OpenSession): Promise<AgentSession> {
    const { chat_id } = asked;
    const known = this.#entries.get(chat_id);
    if (known && !known.session?.isGone) return known.opened;
    const entry: Entry = { part, opened: AgentSession.open({ clock: this.#clock, agent }, asked) };
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

  /** A turn has begun to use it, or has ended. */
  use(chat_id: string, isUsed: boolean): void {
    const entry = this.#entries.get(chat_id);
    if (!entry) return;
    entry.idle?.cancel();
    if (!isUsed) entry.idle = this.#clock.after(IDLE_MS, () => this.end(chat_id));
  }

  end(chat_id: string): void {
    const entry = this.#entries.get(chat_id);
    this.#entries.delete(chat_id);
    entry?.idle?.cancel();
    entry?.session?.end();
  }

  leave(isLeaving: (part: number) => boolean): void {
    for (const [chat_id, { part }] of this.#entries) if (isLeaving(part)) this.end(chat_id);
  }
}
