// The private network of this server: coordinator, relay, and workspace change notifications. Built once in src/context/context.ts.
import type { Clock } from "#base/clock.ts";
import { Coordinator, Relay, type ShownPeer } from "#src/tailnet/index.ts";
import { type ChangesDeps, WorkspaceChanges } from "./workspace-changes.ts";

/** Maximum number of peers shown. */
const MAX_PEERS = 1_000;

/** The members of the network as shown to people. */
export type NetworkView = {
  readonly peers: readonly ShownPeer[];
  readonly coordinator: { readonly peers: number; readonly tunnels: number };
  readonly relay: { readonly clients: number; readonly keys: number };
};

export class Network {
  readonly coordinator = new Coordinator();
  readonly relay: Relay;
  readonly changes: WorkspaceChanges;
  /** Returns the views of other nodes, if any. */
  others: () => Promise<readonly NetworkView[]> = async () => [];

  constructor(parts: ChangesDeps & { readonly clock: Clock }) {
    this.relay = new Relay(parts.clock);
    this.changes = new WorkspaceChanges(parts);
  }

  /** Returns this node's view. A client connected to another node is counted there. */
  get here(): NetworkView {
    const { coordinator, relay } = this;
    return { peers: coordinator.shown(MAX_PEERS), coordinator: coordinator.counts, relay: relay.counts };
  }

  /** Returns the view of all nodes. */
  async whole(): Promise<NetworkView> {
    const views = [this.here, ...(await this.others())];
    const sum = (of: (view: NetworkView) => number): number => views.reduce((all, view) => all + of(view), 0);
    return {
      peers: views.flatMap(({ peers }) => peers).slice(0, MAX_PEERS),
      coordinator: { peers: sum((one) => one.coordinator.peers), tunnels: sum((one) => one.coordinator.tunnels) },
      relay: { clients: sum((one) => one.relay.clients), keys: sum((one) => one.relay.keys) },
    };
  }
}
