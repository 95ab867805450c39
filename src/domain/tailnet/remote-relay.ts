// Forwards packets between the relays of nodes. Clients connect to the first node's relay; peers of another node are at its own relay,
// which exchanges packets with the first node's. The other nodes send their keys repeatedly, so that a new first node learns them. Packets
// that cannot be accepted are dropped, as a relay may (rule CP-64).
import type { Clock } from "#base/clock.ts";
import { FIRST_SHARD, listOtherNodes, type OtherNode, type Shards } from "#base/shards.ts";
import { PacketQueue, type Relay } from "#src/tailnet/index.ts";

const KEY_BYTES = 32;
const KEYS_INTERVAL_MS = 2_000;
/** Maximum bytes of packets in one message, and maximum messages in flight to one node. */
const MAX_MESSAGE_BYTES = 512 * 1024;
const MAX_IN_FLIGHT = 4;
/** Maximum keys per node. */
const MAX_KEYS = 1_000;

/** A message between relays: the sender's keys, and packets, each preceded by the keys of sender and receiver, in base64. */
export type RelayMessage = { readonly keys: readonly string[]; readonly packets: readonly string[] };

export type RemoteRelayDeps = {
  readonly clock: Clock;
  readonly shards: Shards;
  readonly relay: Relay;
  send(node: OtherNode, message: RelayMessage): Promise<unknown>;
};

type NodeQueue = { readonly queue: PacketQueue; inFlight: number; isDue: boolean };

export class RemoteRelay {
  readonly #deps: RemoteRelayDeps;
  /** Key in hex to the node that has announced it. */
  readonly #nodes = new Map<string, string>();
  readonly #queues = new Map<string, NodeQueue>();
  /** Number of packets that were not delivered. */
  lost = 0;

  constructor(deps: RemoteRelayDeps) {
    this.#deps = deps;
    deps.clock.every(KEYS_INTERVAL_MS, () => this.#sendKeys());
  }

  /** Called when a peer has joined this node's relay: the first node must know before the peer gets an answer. */
  onJoined(): void {
    this.#sendKeys();
  }

  /** Forwards a packet to a peer that is not at this node's relay; returns false when no node is known for it. */
  pass(from: Uint8Array, address: string, packet: Uint8Array): boolean {
    const { shards } = this.#deps;
    const id = shards.isFirst ? this.#nodes.get(address) : shards.nodeOf(FIRST_SHARD)?.id;
    if (id === undefined) return false;
    const nodeQueue = this.#queues.get(id) ?? { queue: new PacketQueue(), inFlight: 0, isDue: false };
    this.#queues.set(id, nodeQueue);
    // Copied, because the packet is a view of the input buffer.
    nodeQueue.queue.put("packet", Buffer.concat([from, Buffer.from(address, "hex"), packet]));
    // Packets of one turn are sent together.
    if (!nodeQueue.isDue) queueMicrotask(() => this.#send(id, nodeQueue));
    nodeQueue.isDue = true;
    return true;
  }

  /** Handles a message from another node's relay. */
  receive(node: string, { keys, packets }: RelayMessage): void {
    for (const [key, owner] of this.#nodes) if (owner === node) this.#nodes.delete(key);
    for (const key of keys.slice(0, MAX_KEYS)) this.#nodes.set(key, node);
    for (const text of packets) {
      const bytes = Buffer.from(text, "base64");
      if (bytes.length < 2 * KEY_BYTES) continue;
      const to = bytes.toString("hex", KEY_BYTES, 2 * KEY_BYTES);
      this.#deps.relay.deliverLocal(bytes.subarray(0, KEY_BYTES), to, bytes.subarray(2 * KEY_BYTES));
    }
  }

  #sendKeys(): void {
    const { shards, relay } = this.#deps;
    const first = shards.nodeOf(FIRST_SHARD);
    const others = new Set(listOtherNodes(shards).map(({ id }) => id));
    for (const [key, node] of this.#nodes) if (!others.has(node)) this.#nodes.delete(key);
    if (first && relay.counts.keys > 0) void this.#sendTo(first, []);
  }

  #send(id: string, nodeQueue: NodeQueue): void {
    nodeQueue.isDue = false;
    const node = listOtherNodes(this.#deps.shards).find((one) => one.id === id);
    if (!node) {
      this.#queues.delete(id);
      return;
    }
    while (nodeQueue.inFlight < MAX_IN_FLIGHT) {
      const packets: string[] = [];
      for (let bytes = 0; bytes < MAX_MESSAGE_BYTES; ) {
        const packet = nodeQueue.queue.take();
        if (!packet) break;
        bytes += packet.byteLength;
        packets.push(Buffer.from(packet).toString("base64"));
      }
      if (packets.length === 0) return;
      nodeQueue.inFlight += 1;
      void this.#sendTo(node, packets).finally(() => {
        nodeQueue.inFlight -= 1;
        this.#send(id, nodeQueue);
      });
    }
  }

  async #sendTo(node: OtherNode, packets: readonly string[]): Promise<void> {
    const { shards, relay, send: sendMessage } = this.#deps;
    try {
      await sendMessage(node, { keys: shards.isFirst ? [] : relay.keys.slice(0, MAX_KEYS), packets });
    } catch {
      this.lost += packets.length;
    }
  }
}
