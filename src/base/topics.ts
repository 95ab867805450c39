// Events inside the process, fed by actors after their commit and heard by streams. Nothing here lasts: anyone who misses an event
// reads the store by its cursor. Listeners run synchronously and may not throw.
import { log } from "./log.ts";

export type Listener<E> = (event: E) => void;

/** `Events` maps a kind of topic to its event, such as `{ workspace: { version: number } }`. */
export class Topics<Events extends Record<string, unknown>> {
  readonly #listeners = new Map<string, Set<Listener<never>>>();
  readonly #ofKind = new Map<string, ((id: string, event: never, isFar: boolean) => void)[]>();

  /** Hears every event of this topic until the returned function is called. */
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

  /** Hears every event of this kind, whatever its id; for the life of the process. `isFar`: it happened on another node. */
  subscribeAll<K extends keyof Events & string>(
    kind: K,
    listener: (id: string, event: Events[K], isFar: boolean) => void,
  ): void {
    const known = this.#ofKind.get(kind) ?? [];
    this.#ofKind.set(kind, [...known, listener]);
  }

  /** True when someone listens: lets a publisher skip the work of making the event. */
  heard<K extends keyof Events & string>(kind: K, id: string): boolean {
    return this.#listeners.has(`${kind}:${id}`);
  }

  /** Notifies all current listeners. `isFar`: it happened on another node, which has notified the others. */
  publish<K extends keyof Events & string>(kind: K, id: string, event: Events[K], isFar = false): void {
    for (const listener of this.#ofKind.get(kind) ?? []) listener(id, event as never, isFar);
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

  /** Topics someone listens to; a test of leaks reads this. */
  get size(): number {
    return this.#listeners.size;
  }
}
