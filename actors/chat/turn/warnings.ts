// Current warnings of a chat by source, published to its followers and displayed with it. Kept in memory only; after a restart, each
// source sets its warnings again.

/**
 * mcp: servers that are skipped. tools: tools that the model's server rejects. checkpoint: files that undoing the last message could not
 * restore. agent: a coding agent that has lost its session. workspace: a workspace that is starting.
 */
type Source = "mcp" | "tools" | "checkpoint" | "agent" | "workspace";

const MAX_CHATS = 1_000;

export class ChatWarnings {
  readonly #publish: (chat_id: string, warnings: readonly string[]) => void;
  readonly #chats = new Map<string, ReadonlyMap<Source, readonly string[]>>();

  constructor(publish: (chat_id: string, warnings: readonly string[]) => void) {
    this.#publish = publish;
  }

  /** Returns the warnings of all sources. */
  list(chat_id: string): readonly string[] {
    return [...(this.#chats.get(chat_id)?.values() ?? [])].flat();
  }

  /** Returns the warnings of one source. */
  from(source: Source, chat_id: string): readonly string[] {
    return this.#chats.get(chat_id)?.get(source) ?? [];
  }

  /** Replaces the warnings of this source. */
  set(source: Source, chat_id: string, warnings: readonly string[]): void {
    const next = new Map(this.#chats.get(chat_id));
    next.delete(source);
    if (warnings.length > 0) next.set(source, warnings);
    this.#chats.delete(chat_id);
    if (next.size > 0) this.#chats.set(chat_id, next);
    const [oldest = ""] = this.#chats.keys();
    if (this.#chats.size > MAX_CHATS) this.#chats.delete(oldest);
    this.#publish(chat_id, this.list(chat_id));
  }

  /** Sends warnings to current followers without storing them. */
  sendOnce(chat_id: string, source: Source, warnings: readonly string[]): void {
    const others = [...(this.#chats.get(chat_id) ?? [])].flatMap(([one, texts]) => (one === source ? [] : texts));
    this.#publish(chat_id, [...others, ...warnings]);
  }
}
