// One other peer: a tunnel to it and the connections inside. Packets are accepted only from its own addresses and only to ours. This
// restricts where they go, not what they may do: the coordinator has authorized everyone who has a tunnel. [TL-27] [TL-28]
import type { Clock } from "#base/clock.ts";
import type { Random } from "#base/random.ts";
import type { KeyPair } from "../box.ts";
import { addressKey, type Ends, type Packet, PROTOCOL, parsePacket } from "../packets/ip6.ts";
import { ping, pong, pongId } from "../packets/pings.ts";
import { type Datagram, encodeDatagram, parseDatagram } from "../packets/udp.ts";
import { type Accept, TcpStack } from "../tcp/stack.ts";
import { Tunnel, type TunnelHost } from "../wireguard/tunnel.ts";
import { Discovery } from "./disco.ts";
import type { KnownPeer } from "./node.ts";

/** State shared by all remotes of a peer. */
export type RemoteHost = {
  readonly clock: Clock;
  readonly random: Random;
  readonly tunnels: TunnelHost;
  readonly disco: KeyPair;
  endOfTurn(run: () => void): void;
  /** If false, TCP segments are no larger than those of other implementations. */
  hasLargeSegments?: boolean;
  transmit(to: Uint8Array, message: Uint8Array): void;
  isOwn(address: string): boolean;
  accept: AcceptFrom;
  datagram?(from: Remote, datagram: Datagram, answer: (data: Uint8Array) => void): void;
};

/** Called for a peer's connection to one of our ports: calls `accept` or `reset` on it, now or later. */
export type AcceptFrom = (connection: Parameters<Accept>[0], port: number, from: Remote) => void;

export class Remote {
  /** Its ID at the coordinator, which may change with a new stream. */
  id: string;
  readonly key: Uint8Array;
  readonly tunnel: Tunnel;
  readonly tcp: TcpStack;
  readonly #host: RemoteHost;
  readonly #pings = new Map<string, () => void>();
  #addresses: ReadonlySet<string> = new Set();
  #discovery: Discovery | undefined;
  /** The addresses of the last accepted packet, which usually match the next one. */
  #letIn: Packet | undefined;
  /** Fires when the peer no longer exists. */
  readonly over = new AbortController();

  constructor(id: string, known: KnownPeer, host: RemoteHost) {
    this.id = id;
    this.key = known.key;
    this.#host = host;
    this.tunnel = new Tunnel({
      host: host.tunnels,
      peer: known.key,
      transmit: (message) => host.transmit(known.key, message),
      receive: (packet) => this.#take(packet),
    });
    const { clock, random, endOfTurn, hasLargeSegments = true } = host;
    this.tcp = new TcpStack({
      clock,
      random,
      endOfTurn,
      hasLargeSegments,
      carry: (packet) => this.tunnel.send(packet),
      accept: (connection, port) => host.accept(connection, port, this),
    });
    this.learn(known);
  }

  /** Updates the peer's node; its key is unchanged. */
  learn({ addresses, disco }: KnownPeer): void {
    this.#addresses = new Set(addresses.map(addressKey));
    this.#letIn = undefined;
    if (disco && !this.#discovery?.isWith(disco)) this.#discovery = new Discovery(this.#host.disco, disco);
  }

  /** Returns the answer to a discovery message sent with its key at the relay. */
  discover(sender: Uint8Array, message: Uint8Array, region: number): Uint8Array | undefined {
    return this.#discovery?.isWith(sender) ? this.#discovery.answer(message, region) : undefined;
  }

  /** Returns the round-trip time through the tunnel in milliseconds; undefined if there is no answer within `timeout_ms`. */
  ping(ends: Ends, id: Uint8Array, timeout_ms: number): Promise<number | undefined> {
    const { clock } = this.#host;
    const begun = clock.monotonic();
    const name = Buffer.from(id).toString("hex");
    return new Promise((resolve) => {
      const late = clock.after(timeout_ms, () => {
        this.#pings.delete(name);
        resolve(undefined);
      });
      this.#pings.set(name, () => {
        late.cancel();
        this.#pings.delete(name);
        resolve(clock.monotonic() - begun);
      });
      this.tunnel.send(ping(ends, id));
    });
  }

  /** Sends a datagram. */
  send(ends: Ends, datagram: Datagram): void {
    this.tunnel.send(encodeDatagram(ends, datagram));
  }

  /** The peer no longer exists or has lost its access: all its connections break immediately. */
  close(reason: string): void {
    this.tcp.close(reason);
    this.over.abort();
  }

  #take(bytes: Uint8Array): void {
    const packet = parsePacket(bytes);
    if (!packet || !this.#isLetIn(packet)) return;
    if (packet.protocol === PROTOCOL.tcp) this.tcp.push(packet);
    else if (packet.protocol === PROTOCOL.udp) this.#takeDatagram(packet);
    else {
      const answer = pong(packet);
      if (answer) this.tunnel.send(answer);
      else this.#pings.get(pongId(packet) ?? "")?.();
    }
  }

  #isLetIn(packet: Packet): boolean {
    if (this.#letIn && packet.hasSameEnds(this.#letIn)) return true;
    if (!this.#addresses.has(addressKey(packet.source)) || !this.#host.isOwn(addressKey(packet.target))) return false;
    this.#letIn = packet.endsOnly();
    return true;
  }

  #takeDatagram(packet: Packet): void {
    const datagram = this.#host.datagram && parseDatagram(packet);
    if (!datagram) return;
    const back = { source: packet.target.slice(), target: packet.source.slice() };
    const ports = { sourcePort: datagram.targetPort, targetPort: datagram.sourcePort };
    this.#host.datagram?.(this, datagram, (data) => {
      if (!this.over.signal.aborted) this.tunnel.send(encodeDatagram(back, { ...ports, data }));
    });
  }
}
