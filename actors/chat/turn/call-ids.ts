// Gives each call of a model an ID that the chat has never used. People and clients answer calls by ID, so an answer to an earlier call must
// never match another one; some model servers repeat their IDs (rule CH-55). Used by model-call.ts.
import { uuid } from "#base/ids.ts";
import { listUsedCallIds } from "#db/chats/messages.ts";
import type { Store } from "#db/engine/store.ts";
import type { ModelEvent } from "#src/llm/model.ts";

/** Returns the IDs of all calls of the chat, including those in messages that edits removed. */
export const readUsedCallIds = async (store: Pick<Store, "all">, chat: number): Promise<Set<string>> =>
  new Set((await store.all(listUsedCallIds({ chat }))).map(({ id }) => id));

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
