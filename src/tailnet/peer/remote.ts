// One other peer: a tunnel to it and the connections inside. Packets are accepted only from its own addresses and only to ours. This
// restricts where they go, not what they may do: the coordinator has authorized everyone who has a tunnel. [TL-27] [TL-28]
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
  #lastAccepted: Packet | undefined;
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

  /** Returns the answer to a discovery message sent with its key at the relay. */
  answerDiscovery(sender: Uint8Array, message: Uint8Array, region: number): Uint8Array | undefined {
    return this.#discovery?.isForPeer(sender) ? this.#discovery.answer(message, region) : undefined;
  }

  /** Returns the round-trip time through the tunnel in milliseconds; undefined if there is no answer within `timeout_ms`. */
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

  /** The peer no longer exists or has lost its access: all its connections break immediately. */
  close(reason: string): void {
    this.tcp.close(reason);
    this.over.abort();
  }

  #handlePacket(bytes: Uint8Array): void {
    const packet = parsePacket(bytes);
    if (!packet || !this.#isLetIn(packet)) return;
    if (packet.protocol === PROTOCOL.tcp) this.tcp.push(packet);
    else if (packet.protocol === PROTOCOL.udp) this.#handleDatagram(packet);
    else {
      const answer = encodePong(packet);
      if (answer) this.tunnel.send(answer);
      else this.#pings.get(parsePongId(packet) ?? "")?.();
    }
  }

  #isLetIn(packet: Packet): boolean {
    if (this.#lastAccepted && packet.hasSameEnds(this.#lastAccepted)) return true;
    if (!this.#addresses.has(toAddressKey(packet.source)) || !this.#host.isOwn(toAddressKey(packet.target)))
      return false;
    this.#lastAccepted = packet.withoutPayload();
    return true;
  }

  #handleDatagram(packet: Packet): void {
    const datagram = this.#host.datagram && parseDatagram(packet);
    if (!datagram) return;
    const back = { source: packet.target.slice(), target: packet.source.slice() };
    const ports = { sourcePort: datagram.targetPort, targetPort: datagram.sourcePort };
    this.#host.datagram?.(this, datagram, (data) => {
      if (!this.over.signal.aborted) this.tunnel.send(encodeDatagram(back, { ...ports, data }));
    });
  }
}
