// Tunnels of this node's clients to agents whose coordinator is on another node. The client also joins each such node's coordinator: its
// updates and tunnel requests are sent there, and responses return. Access is checked here first. When an agent's shard moves, its tunnel
// follows. [CP-66]
import type { Clock } from "#base/clock.ts";
import { uuidFromBytes, uuidToBytes } from "#base/ids.ts";
import { log } from "#base/log.ts";
import type { OtherNode, Shards } from "#base/shards.ts";
import {
  countResponseBytes,
  type KnownNode,
  type Peer,
  type PeerHolder,
  type RemoteCoordinators,
} from "#src/tailnet/index.ts";
import {
  type CoordinateResponse,
  CoordinateResponse_PeerUpdate_Kind as Kind,
  type Tailnet,
} from "#src/wire/gen/tailnet_pb.ts";
import { type TypedBidiCall, Wakeup } from "#src/wire/index.ts";
import { CONFIRM_INTERVAL_MS } from "./lost-guests.ts";

/** Interval for checking the agents' shards and retrying unreachable nodes. */
const CHECK_INTERVAL_MS = 1_000;
const UPDATE_BYTES = 64;

/** A client's identity for another node. */
export type RemoteClient = { readonly id: string; readonly holder?: PeerHolder };
type Call = TypedBidiCall<(typeof Tailnet)["method"]["coordinate"]>;

export type RemoteTunnelsDeps = {
  readonly clock: Clock;
  readonly shards: Pick<Shards, "has" | "nodeOf">;
  /** Returns the shard of an agent; undefined when no agent has this ID. */
  shardOf(agent_id: string): number | undefined | Promise<number | undefined>;
  /** Joins the coordinator of another node. */
  join(node: OtherNode, client: RemoteClient): Promise<Call>;
  /** Revokes a lost client's tunnel with this agent, or with all agents. */
  revoke(node: OtherNode, client_id: string, agent_id: string | undefined): Promise<unknown>;
  /** Confirms to another node that this one still watches the access of these lost clients (lost-guests.ts). */
  confirm(node: OtherNode, client_ids: readonly string[]): Promise<unknown>;
};

/** Receives the coordinator's calls. */
export class RemoteTunnels implements RemoteCoordinators {
  readonly #deps: RemoteTunnelsDeps;
  readonly #clients = new Map<Peer, ClientTunnels>();
  /** Nodes of lost clients whose access is still watched. */
  readonly #lost = new Map<string, readonly OtherNode[]>();

  constructor(deps: RemoteTunnelsDeps) {
    this.#deps = deps;
    deps.clock.every(CHECK_INTERVAL_MS, () => {
      for (const client of this.#clients.values()) client.reroute();
    });
    deps.clock.every(CONFIRM_INTERVAL_MS, () => this.#confirmLost());
  }

  /** Called when a peer has joined, possibly replacing an older stream of the same peer, whose tunnels continue. */
  onJoin(peer: Peer, before: Peer | undefined): void {
    this.#lost.delete(peer.id);
    const previous = before && this.#clients.get(before);
    if (!before || !previous) return;
    this.#clients.delete(before);
    const tunnels = previous.agents;
    previous.end("lost");
    for (const id of tunnels) this.addTunnel(peer, id);
  }

  onNodeChange(peer: Peer): void {
    this.#clients.get(peer)?.nodeChanged();
  }

  addTunnel(peer: Peer, agent_id: string): void {
    if (peer.staysHere) return;
    const client = this.#clients.get(peer) ?? new ClientTunnels(this.#deps, peer);
    this.#clients.set(peer, client);
    void client.add(agent_id);
  }

  removeTunnel(peer: Peer, agent_id: string): void {
    this.#clients.get(peer)?.remove(agent_id);
  }

  removePeer(peer: Peer, isLost: boolean): void {
    const client = this.#clients.get(peer);
    if (!client) return;
    this.#clients.delete(peer);
    if (isLost && peer.isWatched) this.#lost.set(peer.id, client.nodes);
    client.end(isLost ? "lost" : "disconnected");
  }

  /** Called when a lost client has lost access to this agent, or to all. */
  revoke(client_id: string, agent_id: string | undefined): void {
    for (const node of this.#lost.get(client_id) ?? []) this.#deps.revoke(node, client_id, agent_id).catch(() => {});
  }

  releaseLost(client_id: string): void {
    this.#lost.delete(client_id);
  }

  #confirmLost(): void {
    const byNode = new Map<string, { node: OtherNode; clients: string[] }>();
    for (const [client_id, nodes] of this.#lost) {
      for (const node of nodes) {
        const entry = byNode.get(node.id) ?? { node, clients: [] };
        byNode.set(node.id, entry);
        entry.clients.push(client_id);
      }
    }
    for (const { node, clients } of byNode.values()) this.#deps.confirm(node, clients).catch(() => {});
  }
}

/** The remote tunnels of one client. */
class ClientTunnels {
  readonly #deps: RemoteTunnelsDeps;
  readonly #peer: Peer;
  /** The shards of the client's agents; undefined until known. Includes agents of this node, whose shards may move. */
  readonly #shards = new Map<string, number | undefined>();
  readonly #nodeTunnels = new Map<string, NodeTunnels>();
  #hasEnded = false;

  constructor(deps: RemoteTunnelsDeps, peer: Peer) {
    this.#deps = deps;
    this.#peer = peer;
  }

  get agents(): string[] {
    return [...this.#shards.keys()];
  }

  get nodes(): OtherNode[] {
    return [...this.#nodeTunnels.values()].map(({ node }) => node);
  }

  async add(agent_id: string): Promise<void> {
    this.#shards.set(agent_id, undefined);
    try {
      const shard = await this.#deps.shardOf(agent_id);
      if (!this.#shards.has(agent_id)) return;
      this.#shards.set(agent_id, shard);
    } catch (error) {
      log("tailnet").warn("cannot find the node of agent {agent_id}: {error}", { agent_id, error });
      return;
    }
    this.reroute();
  }

  remove(agent_id: string): void {
    this.#shards.delete(agent_id);
    this.reroute();
  }

  nodeChanged(): void {
    for (const nodeTunnels of this.#nodeTunnels.values()) nodeTunnels.onChanged();
  }

  /** Updates the routes to where the shards are now. */
  reroute(): void {
    if (this.#hasEnded) return;
    const { shards } = this.#deps;
    const agentsByNode = new Map<string, { node: OtherNode; agents: Set<string> }>();
    for (const [agent_id, shard] of this.#shards) {
      const node = shard === undefined || shards.has(shard) ? undefined : shards.nodeOf(shard);
      if (!node) continue;
      const entry = agentsByNode.get(node.id) ?? { node, agents: new Set() };
      agentsByNode.set(node.id, entry);
      entry.agents.add(agent_id);
    }
    for (const [id, nodeTunnels] of this.#nodeTunnels) {
      const agents = agentsByNode.get(id)?.agents ?? new Set();
      nodeTunnels.setWanted(agents, (agent_id) => !this.#shards.has(agent_id));
      if (agents.size === 0) {
        this.#nodeTunnels.delete(id);
        nodeTunnels.end("disconnected");
      }
    }
    for (const [id, { node, agents }] of agentsByNode) {
      if (this.#nodeTunnels.has(id)) continue;
      const nodeTunnels = new NodeTunnels(this.#deps, node, this.#peer, agents);
      this.#nodeTunnels.set(id, nodeTunnels);
      // The next check starts it again.
      void nodeTunnels.run().finally(() => this.#nodeTunnels.get(id) === nodeTunnels && this.#nodeTunnels.delete(id));
    }
  }

  end(how: "lost" | "disconnected"): void {
    this.#hasEnded = true;
    this.#shards.clear();
    for (const nodeTunnels of this.#nodeTunnels.values()) nodeTunnels.end(how);
    this.#nodeTunnels.clear();
  }
}

/** A client at the coordinator of one other node. */
class NodeTunnels {
  readonly node: OtherNode;
  readonly #deps: RemoteTunnelsDeps;
  readonly #peer: Peer;
  readonly #wakeup = new Wakeup();
  /** Agents of that node that the client knows. */
  readonly #announced = new Set<string>();
  #wanted: ReadonlySet<string>;
  #call: Call | undefined;
  #end: "lost" | "disconnected" | undefined;

  constructor(deps: RemoteTunnelsDeps, node: OtherNode, peer: Peer, wanted: ReadonlySet<string>) {
    this.#deps = deps;
    this.node = node;
    this.#peer = peer;
    this.#wanted = wanted;
  }

  /** Called when the client has changed. */
  onChanged(): void {
    this.#wakeup.wake();
  }

  setWanted(agents: ReadonlySet<string>, isRemoved: (agent_id: string) => boolean): void {
    this.#wanted = agents;
    for (const id of [...this.#announced]) if (!agents.has(id)) this.#hide(id, isRemoved(id));
    this.#wakeup.wake();
  }

  end(how: "lost" | "disconnected"): void {
    this.#end ??= how;
    if (how === "lost") this.#call?.cancel();
    this.#wakeup.wake();
  }

  /** Runs until the route ends; never rejects. */
  async run(): Promise<void> {
    const { id, holder } = this.#peer;
    try {
      const call = await this.#deps.join(this.node, { id, ...(holder && { holder }) });
      this.#call = call;
      if (this.#end === "lost") return call.cancel();
      void this.#sendChanges(call).catch(() => call.cancel());
      for await (const response of call) this.#onResponse(response);
    } catch {
      // The node has ended or no longer owns the shard.
    } finally {
      const hasEnded = this.#end !== undefined;
      this.end("lost");
      if (!hasEnded) for (const agent_id of [...this.#announced]) this.#hide(agent_id, false);
    }
  }

  /** Sends the differences to what was sent last, with backpressure. */
  async #sendChanges(call: Call): Promise<void> {
    const sent = new Set<string>();
    let lastSent: KnownNode | undefined;
    while (this.#end === undefined) {
      const { known } = this.#peer;
      const add = [...this.#wanted].find((id) => !sent.has(id));
      const remove = [...sent].find((id) => !this.#wanted.has(id));
      if (known && known !== lastSent) {
        lastSent = known;
        await call.send({ updateSelf: { node: known.node } });
      } else if (add !== undefined) {
        sent.add(add);
        await call.send({ addTunnel: { id: uuidToBytes(add) } });
      } else if (remove !== undefined) {
        sent.delete(remove);
        await call.send({ removeTunnel: { id: uuidToBytes(remove) } });
      } else await this.#wakeup.wait();
    }
    if (this.#end !== "disconnected") return;
    await call.send({ disconnect: {} });
    await call.closeSend();
  }

  #onResponse(response: CoordinateResponse): void {
    if (this.#end !== undefined) return;
    const updates = response.peerUpdates.filter(({ id }) => this.#wanted.has(uuidFromBytes(id)));
    for (const { id, kind } of updates) {
      if (kind === Kind.NODE) this.#announced.add(uuidFromBytes(id));
      else if (kind !== Kind.READY_FOR_HANDSHAKE) this.#announced.delete(uuidFromBytes(id));
    }
    if (updates.length === 0) return;
    this.#peer.send({ peerUpdates: updates }, countResponseBytes(response));
  }

  #hide(agent_id: string, isRemoved: boolean): void {
    this.#announced.delete(agent_id);
    const kind = isRemoved ? Kind.DISCONNECTED : Kind.LOST;
    const reason = isRemoved ? "tunnel removed" : "the peer's connection was lost";
    this.#peer.send({ peerUpdates: [{ id: uuidToBytes(agent_id), kind, reason }] }, UPDATE_BYTES);
  }
}
