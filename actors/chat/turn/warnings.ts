// The current warnings of each chat, by source, which people see in the chat. Kept in memory only, because each source sets its warnings
// again after a restart.

type Source =
  /** MCP servers that are skipped. */
  | "mcp"
  /** Tools that the model's provider rejects. */
  | "tools"
  /** Files that undoing the last message cannot restore. */
  | "checkpoint"
  /** A coding agent that has lost its session or cannot use MCP tools. */
  | "agent"
  /** A workspace or coding agent that is starting. */
  | "workspace";

/** Maximum chats with warnings. The warnings that were set first are dropped. */
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

  /** Replaces the warnings of this source, and publishes the chat's warnings. */
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

  /** Publishes the chat's warnings with these ones of a source, without storing them. */
  sendOnce(chat_id: string, source: Source, warnings: readonly string[]): void {
    const others = [...(this.#chats.get(chat_id) ?? [])].flatMap(([one, texts]) => (one === source ? [] : texts));
    this.#publish(chat_id, [...others, ...warnings]);
  }
}
