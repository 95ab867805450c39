// The private network of this server: coordinator, relay, and workspace change notifications. Built once in src/context/context.ts.

import type { Events } from "#actors/runtime/events.ts";
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import type { Topics } from "#base/topics.ts";
import { findOwnedWorkspace } from "#db/agents/tailnet-views.ts";
import type { Store } from "#db/engine/store.ts";
import { Coordinator, type PeerSummary, Relay } from "#src/tailnet/index.ts";

type ChangesDeps = { readonly store: Store; readonly topics: Topics<Events> };

type Listener = (workspace_id: string) => void;

/** Notifies streams of changed workspaces by owner. Each change costs one lookup however many streams listen, and none without listeners. */
class WorkspaceChanges {
  readonly #store: Store;
  readonly #listeners = new Map<string, Set<Listener>>();

  constructor({ store, topics }: ChangesDeps) {
    this.#store = store;
    topics.subscribeAll("workspace", (id) => {
      if (this.#listeners.size > 0) void this.#notify(id);
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

  async #notify(id: string): Promise<void> {
    try {
      const workspace = await this.#store.get(findOwnedWorkspace({ id }));
      for (const listener of this.#listeners.get(workspace?.owner_id ?? "") ?? []) listener(id);
    } catch (error) {
      log("tailnet").warn("cannot notify clients of a change of workspace {id}: {error}", { id, error });
    }
  }
}

/** Maximum number of peers shown. */
const MAX_PEERS = 1_000;

/** The members of the network as shown to people. */
export type NetworkView = {
  readonly peers: readonly PeerSummary[];
  readonly coordinator: { readonly peers: number; readonly tunnels: number };
  readonly relay: { readonly clients: number; readonly keys: number };
};

export class Network {
  readonly coordinator = new Coordinator();
  readonly relay: Relay;
  readonly changes: WorkspaceChanges;
  /** Returns the views of other nodes, if any. */
  others: () => Promise<readonly NetworkView[]> = async () => [];

  constructor(deps: ChangesDeps & { readonly clock: Clock }) {
    this.relay = new Relay(deps.clock);
    this.changes = new WorkspaceChanges(deps);
  }

  /** Returns this node's view. A client connected to another node is counted there. */
  get here(): NetworkView {
    const { coordinator, relay } = this;
    return { peers: coordinator.listPeers(MAX_PEERS), coordinator: coordinator.counts, relay: relay.counts };
  }

  /** Returns the view of all nodes. */
  async loadAll(): Promise<NetworkView> {
    const views = [this.here, ...(await this.others())];
    const sum = (read: (view: NetworkView) => number): number => views.reduce((total, view) => total + read(view), 0);
    return {
      peers: views.flatMap(({ peers }) => peers).slice(0, MAX_PEERS),
      coordinator: { peers: sum((one) => one.coordinator.peers), tunnels: sum((one) => one.coordinator.tunnels) },
      relay: { clients: sum((one) => one.relay.clients), keys: sum((one) => one.relay.keys) },
    };
  }
}
