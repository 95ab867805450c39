// Warnings about a chat right now, by source: published to followers of the chat and shown with it. They live in memory; each source raises
// them again after a restart.

/**
 * mcp: servers that are left out. tools: tools that the model's server does not accept. checkpoint: files that an undo of the last message
 * could not bring back. agent: a coding agent that has lost its session. workspace: it is being started.
 */
type Source = "mcp" | "tools" | "checkpoint" | "agent" | "workspace";

const MAX_CHATS = 1_000;

export class ChatWarnings {
  readonly #publish: (chat_id: string, warnings: readonly string[]) => void;
  readonly #chats = new Map<string, ReadonlyMap<Source, readonly string[]>>();

  constructor(publish: (chat_id: string, warnings: readonly string[]) => void) {
    this.#publish = publish;
  }

  /** Those of all sources. */
  of(chat_id: string): readonly string[] {
    return [...(this.#chats.get(chat_id)?.values() ?? [])].flat();
  }

  /** Those of one source. */
  from(source: Source, chat_id: string): readonly string[] {
    return this.#chats.get(chat_id)?.get(source) ?? [];
  }

  /** Replaces what this source has said before. */
  set(source: Source, chat_id: string, warnings: readonly string[]): void {
    const next = new Map(this.#chats.get(chat_id));
    next.delete(source);
    if (warnings.length > 0) next.set(source, warnings);
    this.#chats.delete(chat_id);
    if (next.size > 0) this.#chats.set(chat_id, next);
    const [oldest = ""] = this.#chats.keys();
    if (this.#chats.size > MAX_CHATS) this.#chats.delete(oldest);
    this.#publish(chat_id, this.of(chat_id));
  }

  /** Tells followers for now, without keeping it. */
  tell(chat_id: string, source: Source, warnings: readonly string[]): void {
    const others = [...(this.#chats.get(chat_id) ?? [])].flatMap(([one, texts]) => (one === source ? [] : texts));
    this.#publish(chat_id, [...others, ...warnings]);
  }
}
