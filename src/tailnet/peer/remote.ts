// Another peer, with the tunnel to it and the connections inside. Packets are accepted only from the peer's addresses to this side's. This
// is routing and not access control: the coordinator has authorized each peer that has a tunnel. [TL-27] [TL-28]
import type { Clock } from "#base/clock.ts";
import type { Random } from "#base/random.ts";
import type { KeyPair } from "../box.ts";
import { type AddressPair, type Packet, PROTOCOL, parsePacket, toAddressKey } from "../packets/ip6.ts";
import { encodePing, encodePong, parsePongId } from "../packets/pings.ts";
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

/** Called for a peer's connection to a port of this side. Must call `accept` or `reset` on it, immediately or later. */
export type AcceptFrom = (connection: Parameters<Accept>[0], port: number, from: Remote) => void;

export class Remote {
  /** The peer's ID at the coordinator, which may change with a new stream. */
  id: string;
  readonly key: Uint8Array;
  readonly tunnel: Tunnel;
  readonly tcp: TcpStack;
  readonly #host: RemoteHost;
  readonly #pings = new Map<string, () => void>();
  #addresses: ReadonlySet<string> = new Set();
  #discovery: Discovery | undefined;
  /** The last accepted packet, without its payload. Its addresses usually match those of the next packet. */
  #lastAccepted: Packet | undefined;
  /** Aborted when the peer has left or has lost its access. */
  readonly over = new AbortController();

  constructor(id: string, known: KnownPeer, host: RemoteHost) {
    this.id = id;
    this.key = known.key;
    this.#host = host;
    this.tunnel = new Tunnel({
      host: host.tunnels,
      peer: known.key,
      transmit: (message) => host.transmit(known.key, message),
      receive: (packet) => this.#handlePacket(packet),
    });
    const { clock, random, endOfTurn, hasLargeSegments = true } = host;
    this.tcp = new TcpStack({
      clock,
      random,
      endOfTurn,
      hasLargeSegments,
      sendPacket: (packet) => this.tunnel.send(packet),
      accept: (connection, port) => host.accept(connection, port, this),
    });
    this.update(known);
  }

  /** Updates the peer's node; its key is unchanged. */
  update({ addresses, disco }: KnownPeer): void {
    this.#addresses = new Set(addresses.map(toAddressKey));
    this.#lastAccepted = undefined;
    if (disco && !this.#discovery?.isForPeer(disco)) this.#discovery = new Discovery(this.#host.disco, disco);
  }

  /** Returns the answer to a discovery message that the relay delivered from this peer's key; undefined if it needs none. */
  answerDiscovery(sender: Uint8Array, message: Uint8Array, region: number): Uint8Array | undefined {
    return this.#discovery?.isForPeer(sender) ? this.#discovery.answer(message, region) : undefined;
  }

  /** Sends a ping and returns its round-trip time through the tunnel in milliseconds; undefined without an answer within `timeout_ms`. */
  ping(ends: AddressPair, id: Uint8Array, timeout_ms: number): Promise<number | undefined> {
    const { clock } = this.#host;
    const startedAt = clock.monotonic();
    const name = Buffer.from(id).toString("hex");
    return new Promise((resolve) => {
      const pingTimer = clock.after(timeout_ms, () => {
        this.#pings.delete(name);
        resolve(undefined);
      });
      this.#pings.set(name, () => {
        pingTimer.cancel();
        this.#pings.delete(name);
        resolve(clock.monotonic() - startedAt);
      });
      this.tunnel.send(encodePing(ends, id));
    });
  }

  /** Sends a datagram. */
  send(ends: AddressPair, datagram: Datagram): void {
    this.tunnel.send(encodeDatagram(ends, datagram));
  }

  /** Breaks all connections immediately, because the peer has left or has lost its access. */
  close(reason: string): void {
    this.tcp.close(reason);
    this.over.abort();
  }

  #handlePacket(bytes: Uint8Array): void {
    const packet = parsePacket(bytes);
    if (!packet || !this.#hasAllowedAddresses(packet)) return;
    if (packet.protocol === PROTOCOL.tcp) this.tcp.push(packet);
    else if (packet.protocol === PROTOCOL.udp) this.#handleDatagram(packet);
    else {
      const answer = encodePong(packet);
      if (answer) this.tunnel.send(answer);
      else this.#pings.get(parsePongId(packet) ?? "")?.();
    }
  }

  #hasAllowedAddresses(packet: Packet): boolean {
    if (this.#lastAccepted && packet.hasSameEnds(this.#lastAccepted)) return true;
    if (!this.#addresses.has(toAddressKey(packet.source)) || !this.#host.isOwn(toAddressKey(packet.target)))
      return false;
    this.#lastAccepted = packet.withoutPayload();
    return true;
  }

  #handleDatagram(packet: Packet): void {
    const datagram = this.#host.datagram && parseDatagram(packet);
    if (!datagram) return;
    const replyEnds = { source: packet.target.slice(), target: packet.source.slice() };
    const ports = { sourcePort: datagram.targetPort, targetPort: datagram.sourcePort };
    this.#host.datagram?.(this, datagram, (data) => {
      if (!this.over.signal.aborted) this.tunnel.send(encodeDatagram(replyEnds, { ...ports, data }));
    });
  }
}
