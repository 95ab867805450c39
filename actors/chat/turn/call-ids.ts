// Gives each call of a model an ID that the chat has never used, because some model servers repeat their IDs. People and clients answer
// calls by ID, and an answer to an earlier call must not match a later one (rule CH-55).
import { uuid } from "#base/ids.ts";
import { listCallTexts } from "#db/chats/messages.ts";
import type { Store } from "#db/engine/store.ts";
import type { ModelEvent } from "#src/llm/model.ts";

/** Matches a call's ID in a message's stored JSON. In texts, the quotes are escaped, so texts do not match. */
const STORED_ID = /"tool_call_id":("[^"\\]*(?:\\.[^"\\]*)*")/g;

/** Returns the IDs of all calls of the chat, including those in messages that edits removed. */
export const readUsedCallIds = async (store: Pick<Store, "scan">, chat_key: number): Promise<Set<string>> => {
  const used = new Set<string>();
  for (let after = 0; ; ) {
    const page = await store.scan(listCallTexts({ chat: chat_key, after }));
    const last = page.at(-1);
    if (!last) return used;
    for (const { calls } of page) {
      for (const [, id = ""] of calls?.matchAll(STORED_ID) ?? []) used.add(JSON.parse(id));
    }
    after = last.id;
  }
};

/** Caches the chat's used IDs during one turn. */
export class UsedCallIds {
  #ids: Set<string> | undefined;

  /** Returns the used IDs. The caller adds the IDs of new calls to the set. */
  async read(store: Pick<Store, "scan">, chat_key: number): Promise<Set<string>> {
    this.#ids ??= await readUsedCallIds(store, chat_key);
    return this.#ids;
  }

  /** Forgets the IDs after a failed answer. The answer is usually not stored, so its retry may use the same IDs. */
  forget(): void {
    this.#ids = undefined;
  }
}

/** Renames the calls of one answer. */
export class CallIds {
  readonly #used: Set<string>;
  /** Calls that are still incomplete: the chat's IDs by the provider's IDs. */
  readonly #open = new Map<string, string>();

  /** `used`: the chat's used IDs, to which new ones are added. */
  constructor(used: Set<string>) {
    this.#used = used;
  }

  /** Returns the event with the chat's ID of its call. Calls that the provider runs keep their IDs, because the provider itself answers them. */
  rename(event: CallEvent): CallEvent {
    if (event.type === "tool_call" && event.provider_executed) {
      this.#used.add(event.id);
      return event;
    }
    const id = this.#open.get(event.id) ?? this.#claim(event.id);
    if (event.type === "tool_call") this.#open.delete(event.id);
    else this.#open.set(event.id, id);
    return id === event.id ? event : { ...event, id };
  }

  #claim(provider_id: string): string {
    const id = this.#used.has(provider_id) ? `call_${uuid().replaceAll("-", "")}` : provider_id;
    this.#used.add(id);
    return id;
  }
}

type CallEvent = Extract<ModelEvent, { type: "tool_call" | "tool_call_delta" }>;

export const isCallEvent = (event: ModelEvent): event is CallEvent =>
  event.type === "tool_call" || event.type === "tool_call_delta";
