// The workspace's own SSH server. It asks nobody who they are: anyone who has a connection came through a tunnel that the server opened for
// them. The protocol is ssh2's, loaded with the first connection; the host key is fresh at every start, since the tunnel says who this is. [WN-1]
import type ssh2 from "ssh2";
import { log } from "#base/log.ts";
import { makeSshKeyPair } from "#base/ssh-key.ts";
import { type Duplex, nodeStream } from "#src/wire/index.ts";
import type { ConnectionReports, Ended } from "../connection/connection-reports.ts";
import { Forwards } from "./forwards.ts";
import { type SessionOptions, serveSession } from "./session.ts";
import { SessionCounts, type SessionKind } from "./session-counts.ts";

export type SshOptions = Omit<SessionOptions, "client" | "forwardAgent" | "forwardX11" | "counted"> & {
  reports: ConnectionReports;
};

/** Clients at once; a command line with multiplexing needs one. */
const MAX_CLIENTS = 256;
const KEEPALIVE_MS = 30_000;
/** Keepalives without an answer after which a client has disconnected. */
const MAX_UNANSWERED = 10;

export class SshServer {
  readonly #options: SshOptions;
  readonly #clients = new Set<ssh2.Connection>();
  readonly #counts = new SessionCounts();
  #server: Promise<ssh2.Server> | undefined;

  constructor(options: SshOptions) {
    this.#options = options;
  }

  /** Sessions that are open, by what they are for. */
  get sessions(): Readonly<Record<SessionKind, number>> {
    return this.#counts.open;
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
    server.injectSocket(Object.assign(nodeStream(connection), { remoteAddress: ip }) as never);
    await connection.closed;
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
    const server = new ssh.Server(options as ssh2.ServerConfig, (client, { ip }) => this.#take(client, ip));
    server.on("error", (error: Error) => log("daemon").debug("ssh: {error}", { error }));
    return server;
  }

  #take(client: ssh2.Connection, ip: string): void {
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
          counted: (kind) => this.#counted(kind, ip),
        }),
      );
    });
  }

  #counted(kind: SessionKind, ip: string): Ended {
    const uncount = this.#counts.add(kind);
    const ended = this.#options.reports.begin(kind, ip);
    return (reason, code) => {
      uncount();
      ended(reason, code);
    };
  }
}
