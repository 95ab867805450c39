// Makes the daemon a peer of the private network, through which unmodified editors and command lines reach a workspace. Joins over the
// daemon's own connection, and serves SSH, speed tests, terminals, the HTTP API and the workspace's ports to every peer with a tunnel.
// [WN-7]
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import type { Random } from "#base/random.ts";
import {
  addressWords,
  NetworkPeer,
  RelayLink,
  type Remote,
  type TcpConnection,
  toAgentAddressBytes,
} from "#src/tailnet/index.ts";
import { AGENT_PORT, createTailnetClient, type Duplex, toWireError } from "#src/wire/index.ts";
import type { Connection } from "../connection/connection.ts";
import type { ConnectionReports } from "../connection/connection-reports.ts";
import { type CountedStream, connectTcp, type TunnelServices } from "../connection/tunnel.ts";
import type { RemoteShown } from "../http/debug.ts";
import type { SshServer } from "../ssh/server.ts";
import { DatagramFlows } from "./datagrams.ts";
import { PortVisits } from "./port-visits.ts";
import { serveSpeedTest } from "./speed-test.ts";

export type NetworkOptions = {
  url: URL;
  agent_id: string;
  clock: Clock;
  random: Random;
  connection: Pick<Connection, "forEachSession">;
  signal: AbortSignal;
  /** The services that the server's tunnel also reaches. */
  services: TunnelServices;
  ssh: SshServer;
  /** Counts a new stream to a port of the workspace. The result receives the stream's bytes and its end. */
  countStream(): CountedStream;
  reports: ConnectionReports;
};

type Service = (connection: Duplex, ip: string) => Promise<void>;

/** The peers of a joined daemon, for debugging. */
export type JoinedNetwork = { readonly shown: readonly RemoteShown[] };

/** Joins and rejoins until the signal fires. */
export const joinNetwork = (options: NetworkOptions): JoinedNetwork => new NetworkAgent(options);

class NetworkAgent implements JoinedNetwork {
  readonly #options: NetworkOptions;
  readonly #peer: NetworkPeer;
  readonly #flows = new Map<Remote, DatagramFlows>();
  readonly #daemonServices: ReadonlyMap<number, Service>;
  readonly #portVisits: PortVisits;

  constructor(options: NetworkOptions) {
    const { url, agent_id, clock, random, connection, signal, ssh } = options;
    this.#options = options;
    this.#portVisits = new PortVisits(options);
    this.#daemonServices = new Map<number, Service>([
      [AGENT_PORT.ssh, (stream, ip) => ssh.serve(stream, ip)],
      [AGENT_PORT.system_ssh, (stream, ip) => ssh.serve(stream, ip)],
      [AGENT_PORT.speed_test, (stream) => serveSpeedTest(stream, clock)],
    ]);
    this.#peer = new NetworkPeer({
      clock,
      random,
      role: "agent",
      addresses: toAgentAddressBytes(agent_id),
      link: (key, receive, onAccepted) => new RelayLink({ url, key, clock, random, receive, onAccepted }),
      accept: (stream, port) => void this.#accept(stream, port),
      datagram: (from, datagram, answer) => this.#getFlows(from).send(datagram, answer),
    });
    signal.addEventListener("abort", () => this.#end(), { once: true });
    void connection.forEachSession((session) => this.#peer.run(createTailnetClient(session)), signal);
  }

  /** The peers with a tunnel. */
  get shown(): readonly RemoteShown[] {
    return this.#peer.remotes.map(({ id, key, tunnel, tcp }) => ({
      id,
      key: Buffer.from(key).toString("base64"),
      handshakes: tunnel.handshakes,
      ...tcp.figures,
    }));
  }

  /** Accepts the SYN once the requested service is ready, and rejects it otherwise. */
  async #accept(connection: TcpConnection, port: number): Promise<void> {
    try {
      const ip = addressWords(connection.ends.target);
      const run = this.#daemonServices.get(port) ?? (await this.#connectService(port));
      connection.accept();
      await run(connection, ip);
    } catch (error) {
      const { message } = toWireError(error);
      connection.reset(message);
      log("daemon").debug("a connection of the network ended: {message}", { message, port });
    }
  }

  async #connectService(port: number): Promise<Service> {
    const { services, clock, countStream, reports } = this.#options;
    const service = services.get(port);
    if (!service) {
      const run = await connectTcp({ port, tls: false }, clock, countStream);
      return (stream, ip) => run(stream).finally(this.#portVisits.begin(ip, port));
    }
    const run = await service();
    if (port !== AGENT_PORT.terminal) return run;
    return async (stream, ip) => {
      const ended = reports.begin("terminal", ip);
      await run(stream).finally(() => ended(""));
    };
  }

  #getFlows(remote: Remote): DatagramFlows {
    const existing = this.#flows.get(remote);
    if (existing) return existing;
    const flows = new DatagramFlows(this.#options.clock);
    this.#flows.set(remote, flows);
    remote.over.signal.addEventListener("abort", () => {
      flows.close();
      this.#flows.delete(remote);
    });
    return flows;
  }

  #end(): void {
    this.#portVisits.close();
    this.#options.ssh.close();
    void this.#peer.close();
  }
}
