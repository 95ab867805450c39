// Gives each call of a model an ID that the chat has never used. People and clients answer calls by ID, so an answer to an earlier call must
// never match another one; some model servers repeat their IDs (rule CH-55). Used by model-call.ts.
import { uuid } from "#base/ids.ts";
import { listCallTexts } from "#db/chats/messages.ts";
import type { Store } from "#db/engine/store.ts";
import type { ModelEvent } from "#src/llm/model.ts";

/** A call's ID in the stored content of a message, as JSON. Quotes within texts are escaped there, so texts do not match. */
const STORED_ID = /"tool_call_id":("[^"\\]*(?:\\.[^"\\]*)*")/g;

/** Returns the IDs of all calls of the chat, including those in messages that edits removed. Reads page by page, off the main thread. */
export const readUsedCallIds = async (store: Pick<Store, "scan">, chat: number): Promise<Set<string>> => {
  const used = new Set<string>();
  for (let after = 0; ; ) {
    const page = await store.scan(listCallTexts({ chat, after }));
    const last = page.at(-1);
    if (!last) return used;
    for (const { calls } of page) {
      for (const [, id = ""] of calls?.matchAll(STORED_ID) ?? []) used.add(JSON.parse(id));
    }
    after = last.id;
  }
};

/** One instance per turn: reads the chat's IDs before the turn's first call, and again only after a failed answer. */
export class UsedCallIds {
  #ids: Set<string> | undefined;

  /** Returns the IDs, to which the turn adds those of its own calls. */
  async read(store: Pick<Store, "scan">, chat: number): Promise<Set<string>> {
    this.#ids ??= await readUsedCallIds(store, chat);
    return this.#ids;
  }

  /** Forgets the IDs, because a failed answer is usually not stored: its retry may have the same IDs. */
  forget(): void {
    this.#ids = undefined;
  }
}

/** One instance per answer. */
export class CallIds {
  readonly #used: Set<string>;
  /** The chat's IDs of calls whose arguments are still arriving, by the provider's ID. */
  readonly #open = new Map<string, string>();

  /** `used`: the chat's IDs so far. New ones are added. */
  constructor(used: Set<string>) {
    this.#used = used;
  }

  /** Returns the event with the chat's ID of its call. Calls that the provider runs keep their IDs, because they have no answers. */
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
