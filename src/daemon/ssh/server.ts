// The workspace's SSH server. It does not authenticate clients: every connection comes through a tunnel that the server opened for that
// client. Uses ssh2, loaded with the first connection. The host key is new at every start, because the tunnel authenticates the workspace.
// [WN-1]
import type ssh2 from "ssh2";
import { log } from "#base/log.ts";
import { makeSshKeyPair } from "#base/ssh-key.ts";
import { ConnectionUse, type Duplex, readChunks, toNodeStream } from "#src/wire/index.ts";
import type { ConnectionReports, ReportEnd } from "../connection/connection-reports.ts";
import { Forwards } from "./forwards.ts";
import { type SessionOptions, serveSession } from "./session.ts";
import { SessionCounts, type SessionKind } from "./session-counts.ts";

export type SshOptions = Omit<SessionOptions, "client" | "forwardAgent" | "forwardX11" | "countSession" | "onTyped"> & {
  reports: ConnectionReports;
};

type ClientUse = { readonly use: ConnectionUse; sessions: number };

/** Maximum number of clients; a command line with multiplexing needs one. */
const MAX_CLIENTS = 256;
const KEEPALIVE_MS = 30_000;
/** Number of unanswered keepalives after which a client is considered disconnected. */
const MAX_UNANSWERED_KEEPALIVES = 10;

export class SshServer {
  readonly #options: SshOptions;
  readonly #clients = new Set<ssh2.Connection>();
  readonly #counts = new SessionCounts();
  /**
   * Activity and number of sessions of each client. The key is a number that the client's socket gets as its port, because tunnels have no
   * ports.
   */
  readonly #uses = new Map<number, ClientUse>();
  #acceptedCount = 0;
  #server: Promise<ssh2.Server> | undefined;

  constructor(options: SshOptions) {
    this.#options = options;
  }

  /** Number of open sessions by purpose. */
  get sessions(): Readonly<Record<SessionKind, number>> {
    return this.#counts.open;
  }

  /** Returns the number of sessions of clients that have not used their connection since the last call. */
  countIdleSessions(): number {
    return [...this.#uses.values()].reduce((sum, { use, sessions }) => sum + (use.takeUsed() ? 0 : sessions), 0);
  }

  /** Serves one client at this address; resolves when it has disconnected. */
  async serve(connection: Duplex, ip: string): Promise<void> {
    if (this.#clients.size >= MAX_CLIENTS) {
      connection.reset("There are too many clients.");
      return;
    }
    this.#server ??= this.#load().catch((error: unknown) => {
      // The next client retries.
      this.#server = undefined;
      throw error;
    });
    const server = await this.#server;
    const portNumber = ++this.#acceptedCount;
    const created = { use: new ConnectionUse(this.#options.clock), sessions: 0 };
    this.#uses.set(portNumber, created);
    const socket = toNodeStream(countChannel(connection, (bytes) => created.use.onSent(bytes)));
    try {
      server.injectSocket(Object.assign(socket, { remoteAddress: ip, remotePort: portNumber }) as never);
      await connection.closed;
    } finally {
      this.#uses.delete(portNumber);
    }
  }

  /** Disconnects every client. */
  close(): void {
    for (const client of this.#clients) client.end();
  }

  async #load(): Promise<ssh2.Server> {
    const { default: ssh } = await import("ssh2");
    // The library does not generate the key: it drops the leading zero byte of one point in 256, and cannot read the resulting key.
    const { private_key } = makeSshKeyPair();
    const options = {
      hostKeys: [private_key],
      ident: "Slipway",
      keepaliveInterval: KEEPALIVE_MS,
      keepaliveCountMax: MAX_UNANSWERED_KEEPALIVES,
      // Compression is not worth its cost: the network sees only WireGuard packets.
      algorithms: { compress: ["none" as const] },
    };
    const server = new ssh.Server(options as ssh2.ServerConfig, (client, { ip, port }) =>
      this.#acceptClient(client, ip, this.#uses.get(port)),
    );
    server.on("error", (error: Error) => log("daemon").debug("ssh: {error}", { error }));
    return server;
  }

  #acceptClient(client: ssh2.Connection, ip: string, clientUse: ClientUse | undefined): void {
    this.#clients.add(client);
    const forwards = new Forwards(client);
    client.on("error", (error) => log("daemon").debug("an ssh client failed: {error}", { error }));
    client.on("authentication", (attempt) => attempt.accept());
    client.on("close", () => {
      this.#clients.delete(client);
      forwards.close();
    });
    client.on("ready", () => {
      forwards.begin();
      client.on("session", (accept) =>
        serveSession(accept(), {
          ...this.#options,
          client,
          forwardAgent: () => forwards.forwardAgent(),
          forwardX11: (request, env) => forwards.forwardDisplay(request, env),
          countSession: (kind) => this.#countSession(kind, ip, clientUse),
          onTyped: () => clientUse?.use.onTyped(),
        }),
      );
    });
  }

  #countSession(kind: SessionKind, ip: string, clientUse: ClientUse | undefined): ReportEnd {
    const uncount = this.#counts.add(kind);
    const ended = this.#options.reports.begin(kind, ip);
    let isOpen = true;
    if (clientUse) {
      clientUse.sessions += 1;
      // Opening a session counts as activity.
      clientUse.use.onTyped();
    }
    return (reason, code) => {
      uncount();
      if (clientUse && isOpen) clientUse.sessions -= 1;
      isOpen = false;
      ended(reason, code);
    };
  }
}

/** Wraps a connection to count the bytes read from it. */
const countChannel = (connection: Duplex, onRead: (bytes: number) => void): Duplex => ({
  async read() {
    const chunk = await connection.read();
    onRead(chunk?.byteLength ?? 0);
    return chunk;
  },
  write: (bytes) => connection.write(bytes),
  end: () => connection.end(),
  reset: (reason) => connection.reset(reason),
  closed: connection.closed,
  [Symbol.asyncIterator]() {
    return readChunks(this);
  },
});
