// Forwards local UDP ports to a workspace. Each local sender has its own port in the network, so that replies are routed to it.

import type { AddressPair, Datagram, Remote } from "#src/tailnet/index.ts";
import { VerbFailure } from "../../failure.ts";
import type { PortPair } from "./port-pairs.ts";

type Sender = { readonly socket: Bun.udp.Socket<"buffer">; readonly port: number; readonly address: string };

const FIRST_PORT = 49_152;
/** Maximum number of senders; the oldest are dropped. */
const MAX_SENDERS = 1_024;

export class UdpForward {
  readonly #sockets: Bun.udp.Socket<"buffer">[] = [];
  readonly #ports = new Map<string, number>();
  readonly #senders = new Map<number, Sender>();
  #next = FIRST_PORT;
  #remote: { remote: Remote; addresses: AddressPair } | undefined;

  /** Listens and returns the port. Throws VerbFailure if it cannot listen. */
  async open({ bind, local, remote }: PortPair): Promise<number> {
    try {
      const socket = await Bun.udpSocket({
        hostname: bind,
        port: local,
        socket: {
          data: (from, data, port, address) => this.#send({ socket: from, port, address }, remote, data),
          // The sender may have closed before its reply arrived. Without a handler, the socket's error would end the process.
          error: () => {},
        },
      });
      this.#sockets.push(socket);
      return socket.port;
    } catch (error) {
      throw new VerbFailure(`cannot listen on ${bind}:${local}: ${(error as Error).message}`);
    }
  }

  /** Sets the workspace that datagrams are sent to. */
  setRemote(remote: Remote, addresses: AddressPair): void {
    this.#remote = { remote, addresses };
  }

  /** Delivers a reply to the local sender. */
  deliver({ targetPort, data }: Datagram): void {
    const sender = this.#senders.get(targetPort);
    sender?.socket.send(data.slice(), sender.port, sender.address);
  }

  close(): void {
    for (const socket of this.#sockets) socket.close();
  }

  #send(sender: Sender, targetPort: number, data: Uint8Array): void {
    const sourceKey = `${sender.address}|${sender.port}|${targetPort}`;
    let sourcePort = this.#ports.get(sourceKey);
    if (sourcePort === undefined) {
      sourcePort = this.#next;
      this.#next = this.#next >= FIRST_PORT + MAX_SENDERS ? FIRST_PORT : this.#next + 1;
      for (const [key, port] of this.#ports) if (port === sourcePort) this.#ports.delete(key);
      this.#ports.set(sourceKey, sourcePort);
      this.#senders.set(sourcePort, sender);
    }
    this.#remote?.remote.send(this.#remote.addresses, { sourcePort, targetPort, data });
  }
}
