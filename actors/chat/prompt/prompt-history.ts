// Loads the history from which a model continues: all messages, or the last summary with the messages that were unanswered at that time
// and all later ones (facts/chats 5.6). Used by turns.
import {
  findMarker,
  isTruncatedHistory,
  listModelBefore,
  listModelHistory,
  listSystemRows,
  MAX_MODEL_BYTES,
  type MessageRow,
  sumModelBytesBefore,
  sumModelHistoryBytes,
} from "#db/chats/messages.ts";
import type { Store } from "#db/engine/store.ts";

type Reads = Pick<Store, "get" | "scan">;

/**
 * Returns the history, oldest first. The summary comes before the messages that it left unchanged, although it was written after them
 * (rule CM-4).
 */
export const readHistory = async (store: Reads, chat: number): Promise<readonly SizedRow[]> => {
  const marker = await store.get(findMarker({ chat }));
  if (!marker) return dropPartialTurn(await store.scan(listModelHistory({ chat, from: 0 })));
  const { id: before, replayed } = marker;
  const system = await store.scan(listSystemRows({ chat, before }));
  const kept = replayed ? await store.scan(listModelBefore({ chat, before, limit: replayed })) : [];
  const [summary, ...rest] = await store.scan(listModelHistory({ chat, from: before }));
  const later = dropPartialTurn(rest);
  return summary ? [...system, summary, ...kept.reverse(), ...later] : [...system, ...kept];
};

type SizedRow = MessageRow & { readonly bytes: number };

/** Makes a truncated history start with a message from a person: models reject tool results without their calls. */
const dropPartialTurn = (rows: readonly SizedRow[]): readonly SizedRow[] => {
  if (!isTruncatedHistory(rows)) return rows;
  const first = rows.findIndex(({ role }) => role === "user");
  return rows.slice(first === -1 ? rows.findIndex(({ role }) => role === "assistant") : first);
};

/** A turn keeps a history up to this size in memory between its steps, also while its tools run. */
const MAX_CACHED_BYTES = 2 * 1024 * 1024;

type CachedHistory = {
  readonly marker: number | undefined;
  readonly rows: readonly SizedRow[];
  readonly last: number;
  readonly bytes: number;
};

/**
 * The history of a chat during one turn. Reads the history once, and then only new messages: messages never change, and removing a
 * message ends the turn.
 */
export class TurnHistory {
  readonly #store: Reads;
  readonly #chat: number;
  #cached: CachedHistory | undefined;

  constructor(store: Reads, chat: number) {
    this.#store = store;
    this.#chat = chat;
  }

  /** Returns about how many bytes `read` returns, without reading them. */
  async weigh(): Promise<number> {
    const marker = await this.#store.get(findMarker({ chat: this.#chat }));
    const cached = this.#cached?.marker === marker?.id ? this.#cached : undefined;
    const from = cached ? cached.last + 1 : (marker?.id ?? 0);
    const found = await this.#store.get(sumModelHistoryBytes({ chat: this.#chat, from }));
    const bytes = Math.min((cached?.bytes ?? 0) + (found?.bytes ?? 0), MAX_MODEL_BYTES);
    if (cached || !marker?.replayed) return bytes;
    const { id: before, replayed: limit } = marker;
    const kept = await this.#store.get(sumModelBytesBefore({ chat: this.#chat, before, limit }));
    return bytes + (kept?.bytes ?? 0);
  }

  /** Returns the same as `readHistory`. */
  async read(): Promise<readonly MessageRow[]> {
    const marker = (await this.#store.get(findMarker({ chat: this.#chat })))?.id;
    const cached = this.#cached?.marker === marker ? this.#cached : undefined;
    this.#cached = undefined;
    const from = (cached?.last ?? 0) + 1;
    const extended = cached && [
      ...cached.rows,
      ...(await this.#store.scan(listModelHistory({ chat: this.#chat, from }))),
    ];
    const rows = extended && !isTruncatedHistory(extended) ? extended : await readHistory(this.#store, this.#chat);
    const last = rows.reduce((newest, { id }) => Math.max(newest, id), 0);
    const bytes = rows.reduce((sum, one) => sum + one.bytes, 0);
    if (rows.length > 0 && bytes <= MAX_CACHED_BYTES) this.#cached = { marker, rows, last, bytes };
    return rows;
  }
}
