// Forwards connections for one SSH client: to ports and Unix sockets of the workspace (-L, -D), from ports and sockets of the workspace to
// the client (-R), and to the client's agent and display. Everything ends with the client. [WN-4] [WN-9]
import { createConnection, createServer, type Server, type Socket } from "node:net";
import type { Duplex as NodeDuplex } from "node:stream";
import type ssh2 from "ssh2";
import type { Environment } from "../environment.ts";
import { AgentSocket } from "./agent-socket.ts";
import { openDisplay, type X11Display, type X11Request } from "./x11.ts";

/** Maximum number of listeners of one client, and of connections through them. */
const MAX_LISTENERS = 64;
const MAX_CONNECTIONS = 1_024;

type Accept = () => ssh2.ServerChannel;
type OnOpened = (error: Error | undefined, channel: NodeDuplex) => void;

export class Forwards {
  readonly #client: ssh2.Connection;
  readonly #listeners = new Map<string, Server>();
  readonly #sockets = new Set<Socket>();
  readonly #displays = new Set<X11Display>();
  #agent: Promise<AgentSocket | undefined> | undefined;

  constructor(client: ssh2.Connection) {
    this.#client = client;
  }

  /** Starts to accept requests. */
  begin(): void {
    const client = this.#client;
    client.on("tcpip", (accept, reject, { destIP, destPort }) =>
      this.#connect(createConnection({ host: destIP, port: destPort, noDelay: true }), accept, reject),
    );
    client.on("openssh.streamlocal", (accept, reject, { socketPath }) =>
      this.#connect(createConnection(socketPath), accept, reject),
    );
    client.on("request", (accept, reject, requested, info) => {
      const name: string = requested;
      const forwardInfo = info as { bindAddr: string; bindPort: number; socketPath: string };
      if (name === "tcpip-forward") this.#listenOnPort(forwardInfo, accept, reject);
      else if (name === "streamlocal-forward@openssh.com") this.#listenOnPath(forwardInfo, accept, reject);
      else if (name === "cancel-tcpip-forward")
        this.#cancel(`${forwardInfo.bindAddr}:${forwardInfo.bindPort}`, accept, reject);
      else if (name === "cancel-streamlocal-forward@openssh.com") this.#cancel(forwardInfo.socketPath, accept, reject);
      else reject?.();
    });
  }

  /** Returns a socket that forwards to the client's agent. All sessions of the client share it. */
  forwardAgent(): Promise<AgentSocket | undefined> {
    this.#agent ??= AgentSocket.open((socket) => this.#connectToAgent(socket));
    return this.#agent;
  }

  /** Returns a display that forwards to the client. Each session that requests a display gets its own. */
  async forwardDisplay(request: X11Request, env: Environment): Promise<X11Display | undefined> {
    if (this.#displays.size >= MAX_LISTENERS) return undefined;
    const openedDisplay = await openDisplay(request, env, (socket) => {
      const { remoteAddress = "127.0.0.1", remotePort = 0 } = socket;
      if (this.#sockets.size >= MAX_CONNECTIONS) socket.destroy();
      else
        this.#client.x11(remoteAddress, remotePort, (error, channel) =>
          error ? socket.destroy() : this.#connectBoth(socket, channel),
        );
    });
    if (openedDisplay) this.#displays.add(openedDisplay);
    return (
      openedDisplay && { ...openedDisplay, close: () => this.#displays.delete(openedDisplay) && openedDisplay.close() }
    );
  }

  close(): void {
    for (const display of this.#displays) display.close();
    this.#displays.clear();
    for (const listener of this.#listeners.values()) listener.close();
    for (const socket of this.#sockets) socket.destroy();
    this.#listeners.clear();
    void this.#agent?.then((socket) => socket?.remove());
  }

  #connect(socket: Socket, accept: Accept, reject: () => void): void {
    if (this.#sockets.size >= MAX_CONNECTIONS) {
      socket.destroy();
      reject();
      return;
    }
    socket.once("error", reject);
    socket.once("connect", () => {
      socket.removeListener("error", reject);
      this.#connectBoth(socket, accept());
    });
  }

  #listenOnPort(info: { bindAddr: string; bindPort: number }, accept: Answer, reject: Reject): void {
    const { bindAddr, bindPort } = info;
    const server = this.#createListener((socket, opened) => {
      const { remoteAddress = "127.0.0.1", remotePort = 0 } = socket;
      this.#client.forwardOut(bindAddr, getPort(server, bindPort), remoteAddress, remotePort, opened as never);
    });
    this.#begin(server, reject, () => {
      server.listen(bindPort, toHost(bindAddr), () => {
        const port = getPort(server, bindPort);
        this.#listeners.set(`${bindAddr}:${port}`, server);
        accept?.(port);
      });
    });
  }

  #listenOnPath({ socketPath }: { socketPath: string }, accept: Answer, reject: Reject): void {
    const server = this.#createListener((_, opened) => {
      this.#client.openssh_forwardOutStreamLocal(socketPath, opened as never);
    });
    this.#begin(server, reject, () => {
      server.listen(socketPath, () => {
        this.#listeners.set(socketPath, server);
        accept?.();
      });
    });
  }

  #begin(server: Server, reject: Reject, listen: () => void): void {
    server.once("error", () => reject?.());
    if (this.#listeners.size < MAX_LISTENERS) listen();
    else reject?.();
  }

  #cancel(name: string, accept: Answer, reject: Reject): void {
    const server = this.#listeners.get(name);
    this.#listeners.delete(name);
    server?.close();
    if (server) accept?.();
    else reject?.();
  }

  #createListener(open: (socket: Socket, opened: OnOpened) => void): Server {
    return createServer((socket) => {
      socket.on("error", () => {});
      if (this.#sockets.size >= MAX_CONNECTIONS) socket.destroy();
      else open(socket, (error, channel) => (error ? socket.destroy() : this.#connectBoth(socket, channel)));
    });
  }

  #connectToAgent(socket: Socket): void {
    // ssh2 implements this message but has no public call that sends it. We send it in place of another message that is answered in the
    // same way.
    const client = this.#client as unknown as { _protocol: ForwardingProtocol; x11: OpenX11 };
    const protocol = client._protocol;
    const { x11 } = protocol;
    protocol.x11 = (channel, window, packet) => protocol.openssh_authAgent(channel, window, packet);
    try {
      client.x11("", 0, (error, channel) => (error ? socket.destroy() : this.#connectBoth(socket, channel)));
    } finally {
      protocol.x11 = x11;
    }
  }

  #connectBoth(socket: Socket, channel: NodeDuplex): void {
    this.#sockets.add(socket);
    socket.on("error", () => channel.destroy());
    channel.on("error", () => socket.destroy());
    channel.on("close", () => socket.destroy());
    socket.on("close", () => this.#sockets.delete(socket));
    socket.pipe(channel);
    channel.pipe(socket);
  }
}

type Answer = ((port?: number) => void) | undefined;
type Reject = (() => void) | undefined;
type OpenX11 = (address: string, port: number, opened: OnOpened) => void;
type ForwardingProtocol = {
  x11: (channel: number, window: number, packet: number, options?: unknown) => void;
  openssh_authAgent: (channel: number, window: number, packet: number) => void;
};

const getPort = (server: Server, fallback: number): number => {
  const address = server.address();
  return typeof address === "object" && address ? address.port : fallback;
};

/** As in OpenSSH, an empty address and `*` mean all addresses. */
const toHost = (bindAddr: string): string => (bindAddr === "" || bindAddr === "*" ? "::" : bindAddr);
