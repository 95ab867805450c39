// In-process events, published by actors after their commits and received by streams. Events are not stored: a subscriber that misses one
// reads the store from its cursor. Listeners run synchronously and must not throw.
import { log } from "./log.ts";

export type Listener<E> = (event: E) => void;

/** `Events` maps each kind of topic to its event, such as `{ workspace: { version: number } }`. */
export class Topics<Events extends Record<string, unknown>> {
  readonly #listeners = new Map<string, Set<Listener<never>>>();
  readonly #kindListeners = new Map<string, ((id: string, event: never, isFar: boolean) => void)[]>();

  /** Calls the listener for every event of this topic until the returned function is called. */
  subscribe<K extends keyof Events & string>(kind: K, id: string, listener: Listener<Events[K]>): () => void {
    const topic = `${kind}:${id}`;
    let listeners = this.#listeners.get(topic);
    if (!listeners) {
      listeners = new Set();
      this.#listeners.set(topic, listeners);
    }
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#listeners.get(topic) === listeners) this.#listeners.delete(topic);
    };
  }

  /** Calls the listener for every event of this kind, with any ID, for the life of the process. `isFar`: the event is from another node. */
  subscribeAll<K extends keyof Events & string>(
    kind: K,
    listener: (id: string, event: Events[K], isFar: boolean) => void,
  ): void {
    const listeners = this.#kindListeners.get(kind) ?? [];
    this.#kindListeners.set(kind, [...listeners, listener]);
  }

  /** Returns whether the topic has listeners, so that a publisher can skip creating the event. */
  hasListeners<K extends keyof Events & string>(kind: K, id: string): boolean {
    return this.#listeners.has(`${kind}:${id}`);
  }

  /** Notifies all current listeners. `isFar`: the event is from another node, which has notified the other nodes. */
  publish<K extends keyof Events & string>(kind: K, id: string, event: Events[K], isFar = false): void {
    for (const listener of this.#kindListeners.get(kind) ?? []) listener(id, event as never, isFar);
    const listeners = this.#listeners.get(`${kind}:${id}`);
    if (!listeners) return;
    for (const listener of [...listeners]) {
      try {
        (listener as Listener<Events[K]>)(event);
      } catch (error) {
        log("topics").error("a listener of {kind} threw: {error}", { kind, error });
      }
    }
  }

  /** Returns the number of topics with listeners, for leak tests. */
  get size(): number {
    return this.#listeners.size;
  }
}
