// A Unix socket that forwards to a client's SSH agent, in a folder that only this user can read. [WN-4]
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { log } from "#base/log.ts";

export class AgentSocket {
  readonly path: string;
  readonly #folder: string;
  readonly #server: Server;

  private constructor(folder: string, path: string, server: Server) {
    this.#folder = folder;
    this.path = path;
    this.#server = server;
  }

  /** Returns undefined if the socket cannot be created. */
  static async open(onConnection: (socket: Socket) => void): Promise<AgentSocket | undefined> {
    try {
      const folder = mkdtempSync(join(tmpdir(), "slipway-ssh-"));
      const path = join(folder, "agent");
      const server = createServer((socket) => {
        socket.on("error", () => {});
        onConnection(socket);
      });
      await new Promise<void>((resolve, reject) => {
        server.once("error", reject);
        server.listen(path, resolve);
      });
      chmodSync(path, 0o600);
      return new AgentSocket(folder, path, server);
    } catch (error) {
      log("daemon").warn("an SSH agent cannot be forwarded: {error}", { error });
      return undefined;
    }
  }

  /** Closes and removes the socket. */
  remove(): void {
    this.#server.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
