// The daemon as a peer of the private network, which is how genuine editors, command lines and agents' servers reach a workspace: it joins on
// the daemon's own connection, and serves SSH, speed tests, terminals, the HTTP API and the workspace's ports to whoever has a tunnel. [WN-7]
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import type { Random } from "#base/random.ts";
import { NetworkPeer } from "#src/tailnet/peer/network-peer.ts";
import { agentAddressBytes } from "#src/tailnet/peer/node.ts";
import { RelayLink } from "#src/tailnet/peer/relay-link.ts";
import type { Remote } from "#src/tailnet/peer/remote.ts";
import type { TcpConnection } from "#src/tailnet/tcp/connection.ts";
import { tailnetClient } from "#src/wire/agent-api.ts";
import { AGENT_PORT } from "#src/wire/agent-dialer.ts";
import type { Duplex } from "#src/wire/duplex.ts";
import { asWireError } from "#src/wire/wire-error.ts";
import type { Connection } from "../connection/connection.ts";
import { type TunnelServices, tcp } from "../connection/tunnel.ts";
import type { SshServer } from "../ssh/server.ts";
import { DatagramFlows } from "./datagrams.ts";
import { serveSpeedTest } from "./speed-test.ts";

export type NetworkOptions = {
  url: URL;
  agent_id: string;
  clock: Clock;
  random: Random;
  connection: Pick<Connection, "eachSession">;
  signal: AbortSignal;
  /** What the tunnel of the server reaches, too. */
  services: TunnelServices;
  ssh: SshServer;
  /** A stream to a port of the workspace begins; called back when it has ended. */
  counted(): () => void;
};

type Service = (connection: Duplex) => Promise<void>;

/** Joins, again and again until the signal fires. */
export const joinNetwork = (options: NetworkOptions): void => void new NetworkAgent(options);

class NetworkAgent {
  readonly #o: NetworkOptions;
  readonly #peer: NetworkPeer;
  readonly #flows = new Map<Remote, DatagramFlows>();
  readonly #own: ReadonlyMap<number, Service>;

  constructor(options: NetworkOptions) {
    const { url, agent_id, clock, random, connection, signal, ssh } = options;
    this.#o = options;
    this.#own = new Map<number, Service>([
      [AGENT_PORT.ssh, (stream) => ssh.serve(stream)],
      [AGENT_PORT.system_ssh, (stream) => ssh.serve(stream)],
      [AGENT_PORT.speed_test, (stream) => serveSpeedTest(stream, clock)],
    ]);
    this.#peer = new NetworkPeer({
      clock,
      random,
      role: "agent",
      addresses: agentAddressBytes(agent_id),
      link: (key, receive) => new RelayLink({ url, key, clock, random, receive }),
      accept: (stream, port) => void this.#accept(stream, port),
      datagram: (from, datagram, answer) => this.#flowsOf(from).send(datagram, answer),
    });
    signal.addEventListener("abort", () => this.#end(), { once: true });
    void connection.eachSession((session) => this.#peer.run(tailnetClient(session)), signal);
  }

  /** The SYN is answered once whatever is asked for has answered, and refused when it has not. */
  async #accept(connection: TcpConnection, port: number): Promise<void> {
    try {
      const run = this.#own.get(port) ?? (await this.#reach(port));
      connection.accept();
      await run(connection);
    } catch (error) {
      const { message } = asWireError(error);
      connection.reset(message);
      log("daemon").debug("a connection of the network ended: {message}", { message, port });
    }
  }

  async #reach(port: number): Promise<Service> {
    const { services, clock, counted } = this.#o;
    const service = services.get(port);
    return service ? await service() : await tcp({ port, tls: false }, clock, counted);
  }

  #flowsOf(remote: Remote): DatagramFlows {
    const known = this.#flows.get(remote);
    if (known) return known;
    const flows = new DatagramFlows(this.#o.clock);
    this.#flows.set(remote, flows);
    remote.over.signal.addEventListener("abort", () => {
      flows.close();
      this.#flows.delete(remote);
    });
    return flows;
  }

  #end(): void {
    this.#o.ssh.close();
    void this.#peer.close();
  }
}
