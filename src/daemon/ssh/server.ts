// The workspace's own SSH server. It asks nobody who they are: anyone who has a connection came through a tunnel that the server opened for
// them. The protocol is ssh2's, loaded with the first connection; the host key is fresh at every start, since the tunnel says who this is. [WN-1]
import type ssh2 from "ssh2";
import { log } from "#base/log.ts";
import { makeSshKeyPair } from "#base/ssh-key.ts";
import { ConnectionUse, type Duplex, nodeStream, readChunks } from "#src/wire/index.ts";
import type { ConnectionReports, Ended } from "../connection/connection-reports.ts";
import { Forwards } from "./forwards.ts";
import { type SessionOptions, serveSession } from "./session.ts";
import { SessionCounts, type SessionKind } from "./session-counts.ts";

export type SshOptions = Omit<SessionOptions, "client" | "forwardAgent" | "forwardX11" | "counted" | "typed"> & {
  reports: ConnectionReports;
};

type ClientUse = { readonly use: ConnectionUse; sessions: number };

/** Clients at once; a command line with multiplexing needs one. */
const MAX_CLIENTS = 256;
const KEEPALIVE_MS = 30_000;
/** Keepalives without an answer after which a client has disconnected. */
const MAX_UNANSWERED = 10;

export class SshServer {
  readonly #options: SshOptions;
  readonly #clients = new Set<ssh2.Connection>();
  readonly #counts = new SessionCounts();
  /** What clients do and how many sessions they have, by the number that stands for the port of each: a tunnel has none. */
  readonly #uses = new Map<number, ClientUse>();
  #taken = 0;
  #server: Promise<ssh2.Server> | undefined;

  constructor(options: SshOptions) {
    this.#options = options;
  }

  /** Sessions that are open, by what they are for. */
  get sessions(): Readonly<Record<SessionKind, number>> {
    return this.#counts.open;
  }

  /** Sessions of clients that have not used their connection since the last call. */
  takeIdle(): number {
    return [...this.#uses.values()].reduce((sum, { use, sessions }) => sum + (use.take() ? 0 : sessions), 0);
  }

  /** Serves one client at this address; resolves when it has gone. */
  async serve(connection: Duplex, ip: string): Promise<void> {
    if (this.#clients.size >= MAX_CLIENTS) {
      connection.reset("There are too many clients.");
      return;
    }
    this.#server ??= this.#load().catch((error: unknown) => {
      // The next client tries again.
      this.#server = undefined;
      throw error;
    });
    const server = await this.#server;
    const number = ++this.#taken;
    const of = { use: new ConnectionUse(this.#options.clock), sessions: 0 };
    this.#uses.set(number, of);
    const socket = nodeStream(counting(connection, (bytes) => of.use.sent(bytes)));
    try {
      server.injectSocket(Object.assign(socket, { remoteAddress: ip, remotePort: number }) as never);
      await connection.closed;
    } finally {
      this.#uses.delete(number);
    }
  }

  /** Ends every client. */
  close(): void {
    for (const client of this.#clients) client.end();
  }

  async #load(): Promise<ssh2.Server> {
    const { default: ssh } = await import("ssh2");
    // Not the library's own: it loses the first byte of one point in 256, which is zero, and cannot read the key that it has written.
    const { private_key } = makeSshKeyPair();
    const options = {
      hostKeys: [private_key],
      ident: "Slipway",
      keepaliveInterval: KEEPALIVE_MS,
      keepaliveCountMax: MAX_UNANSWERED,
      // Compression would be paid for twice: what crosses the network is in WireGuard.
      algorithms: { compress: ["none" as const] },
    };
    const server = new ssh.Server(options as ssh2.ServerConfig, (client, { ip, port }) =>
      this.#take(client, ip, this.#uses.get(port)),
    );
    server.on("error", (error: Error) => log("daemon").debug("ssh: {error}", { error }));
    return server;
  }

  #take(client: ssh2.Connection, ip: string, of: ClientUse | undefined): void {
    this.#clients.add(client);
    const forwards = new Forwards(client);
    client.on("error", (error) => log("daemon").debug("an ssh client broke: {error}", { error }));
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
          forwardAgent: () => forwards.agent(),
          forwardX11: (request, env) => forwards.display(request, env),
          counted: (kind) => this.#counted(kind, ip, of),
          typed: () => of?.use.typed(),
        }),
      );
    });
  }

  #counted(kind: SessionKind, ip: string, of: ClientUse | undefined): Ended {
    const uncount = this.#counts.add(kind);
    const ended = this.#options.reports.begin(kind, ip);
    let isOpen = true;
    if (of) {
      of.sessions += 1;
      // It was just opened by somebody.
      of.use.typed();
    }
    return (reason, code) => {
      uncount();
      if (of && isOpen) of.sessions -= 1;
      isOpen = false;
      ended(reason, code);
    };
  }
}

/** The same connection; what is read of it is counted. */
const counting = (connection: Duplex, read: (bytes: number) => void): Duplex => ({
  async read() {
    const chunk = await connection.read();
    read(chunk?.byteLength ?? 0);
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
