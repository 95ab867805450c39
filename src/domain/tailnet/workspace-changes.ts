// Notifies streams of changed workspaces by owner. Each change costs one lookup however many streams listen, and none without listeners.
import type { Events } from "#actors/runtime/events.ts";
import { log } from "#base/log.ts";
import type { Topics } from "#base/topics.ts";
import { findOwnedWorkspace } from "#db/agents/tailnet-views.ts";
import type { Store } from "#db/engine/store.ts";

export type ChangesDeps = { readonly store: Store; readonly topics: Topics<Events> };

type Listener = (workspace_id: string) => void;

export class WorkspaceChanges {
  readonly #store: Store;
  readonly #listeners = new Map<string, Set<Listener>>();

  constructor({ store, topics }: ChangesDeps) {
    this.#store = store;
    topics.subscribeAll("workspace", (id) => {
      if (this.#listeners.size > 0) void this.#tell(id);
    });
  }

  /** Calls the listener for every change of this owner's workspaces until the returned function is called. */
  listen(owner_id: string, listener: Listener): () => void {
    const listeners = this.#listeners.get(owner_id) ?? new Set();
    this.#listeners.set(owner_id, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#listeners.get(owner_id) === listeners) this.#listeners.delete(owner_id);
    };
  }

  async #tell(id: string): Promise<void> {
    try {
      const workspace = await this.#store.get(findOwnedWorkspace({ id }));
      for (const listener of this.#listeners.get(workspace?.owner_id ?? "") ?? []) listener(id);
    } catch (error) {
      log("tailnet").warn("a change of workspace {id} was not passed on: {error}", { id, error });
    }
  }
}
