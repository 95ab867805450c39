// Forwards one local TCP port to a workspace.
import { createServer, type Server, type Socket } from "node:net";
import { type Duplex, toNodeStream } from "#src/wire/index.ts";
import { VerbFailure } from "../../failure.ts";
import type { PortPair } from "./port-pairs.ts";

export class TcpForward implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server) {
    this.#server = server;
  }

  /** Listens, and forwards each connection over one that `dial` opens. Throws VerbFailure if it cannot listen on the port. */
  static async open({ bind, local }: PortPair, dial: () => Promise<Duplex>): Promise<TcpForward> {
    const server = createServer({ allowHalfOpen: true, noDelay: true });
    const forward = new TcpForward(server);
    server.on("connection", (socket) => void forward.#forward(socket, dial));
    await new Promise<void>((resolve, reject) => {
      server.once("error", (error) => reject(new VerbFailure(`cannot listen on ${bind}:${local}: ${error.message}`)));
      server.listen(local, bind, resolve);
    });
    return forward;
  }

  /** The requested port, or the free one that was chosen. */
  get port(): number {
    const address = this.#server.address();
    return typeof address === "object" && address ? address.port : 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  async #forward(socket: Socket, dial: () => Promise<Duplex>): Promise<void> {
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket));
    socket.on("error", () => socket.destroy());
    socket.pause();
    try {
      const stream = toNodeStream(await dial(), { halfOpen: true });
      stream.on("error", () => socket.destroy());
      socket.on("close", () => stream.destroy());
      socket.pipe(stream);
      stream.pipe(socket);
    } catch {
      socket.resetAndDestroy();
    }
  }
}
