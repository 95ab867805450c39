// Connects a container to a server that only this machine can reach: listens on the gateway of the container's network, accepts connections
// only from that container, and forwards them to the server.
import { connect, createServer, type Server, type Socket } from "node:net";

/** The engine's data about a container's networks. */
export type ContainerNetworks = {
  readonly HostConfig?: { readonly NetworkMode?: string };
  readonly NetworkSettings?: {
    readonly Networks?: Readonly<Record<string, { readonly Gateway?: string; readonly IPAddress?: string }>> | null;
  };
};

/** How a container reaches the server: directly, or through a relay that listens on `gateway` for `address`. */
export type Route = { readonly kind: "direct" } | { readonly kind: "relay"; gateway: string; address: string };

const LOCAL_HOSTS = new Set(["localhost", "127.0.0.1", "[::1]", "host.docker.internal"]);

/** Throws Error with a readable message if there is no route. Pure. */
export const findRoute = (server: URL, { HostConfig, NetworkSettings }: ContainerNetworks): Route => {
  if (!LOCAL_HOSTS.has(server.hostname) || HostConfig?.NetworkMode === "host") return { kind: "direct" };
  if (server.protocol !== "http:") {
    throw new Error(
      `A container cannot reach the server at ${server.origin}; set an access URL that other machines can reach.`,
    );
  }
  for (const { Gateway, IPAddress } of Object.values(NetworkSettings?.Networks ?? {})) {
    if (Gateway && IPAddress) return { kind: "relay", gateway: Gateway, address: IPAddress };
  }
  throw new Error("The container has no network through which it can reach the server.");
};

/** Maximum number of connections; one agent needs a handful. */
const MAX_CONNECTIONS = 64;
const MAX_HEAD_BYTES = 64 * 1024;

export class Relay implements Disposable {
  /** The server's URL for the container. */
  readonly url: URL;
  readonly #server: Server;
  readonly #sockets: Set<Socket>;

  private constructor(url: URL, server: Server, sockets: Set<Socket>) {
    this.url = url;
    this.#server = server;
    this.#sockets = sockets;
  }

  /** Rejects with a readable message if it cannot listen on the gateway, for example because the engine runs on another machine. */
  static async listen(target: URL, { gateway, address }: { gateway: string; address: string }): Promise<Relay> {
    const sockets = new Set<Socket>();
    const server = createServer({ allowHalfOpen: true }, (client) => {
      if (normalizeAddress(client.remoteAddress) !== normalizeAddress(address) || sockets.size >= MAX_CONNECTIONS) {
        client.destroy();
        return;
      }
      const upstream = connect({ host: getHost(target), port: Number(target.port) || 80, allowHalfOpen: true });
      for (const [socket, peer] of [[client, upstream] as const, [upstream, client] as const]) {
        sockets.add(client);
        socket.on("error", () => peer.destroy());
        socket.on("close", () => {
          sockets.delete(socket);
          peer.destroy();
        });
      }
      upstream.pipe(client);
      forward(client, upstream, target.host);
    });
    const listening = Promise.withResolvers<void>();
    server.once("error", listening.reject);
    server.listen({ host: gateway, port: 0 }, listening.resolve);
    try {
      await listening.promise;
    } catch (error) {
      throw new Error(
        `The container cannot reach the server at ${target.origin}, and cannot listen on ${gateway}: ${(error as Error).message}`,
      );
    }
    const boundAddress = server.address();
    const port = typeof boundAddress === "object" && boundAddress !== null ? boundAddress.port : 0;
    const url = new URL(target);
    url.hostname = gateway.includes(":") ? `[${gateway}]` : gateway;
    url.port = String(port);
    return new Relay(url, server, sockets);
  }

  [Symbol.dispose](): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}

/** Forwards all bytes. Writes the server's own host name into the first request, because the server accepts no other. */
const forward = (client: Socket, upstream: Socket, host: string): void => {
  let head = Buffer.alloc(0);
  const onData = (chunk: Buffer): void => {
    head = Buffer.concat([head, chunk]);
    const end = head.indexOf("\r\n\r\n");
    if (end < 0 && head.length > MAX_HEAD_BYTES) client.destroy();
    if (end < 0) return;
    client.off("data", onData);
    client.pause();
    upstream.write(rewriteHead(host, head.subarray(0, end).toString("latin1")), "latin1");
    upstream.write(head.subarray(end));
    client.pipe(upstream);
  };
  client.on("data", onData);
};

/**
 * Rewrites the head of a request for `host`. Unless the request upgrades the connection, the connection closes after it, so that no later
 * request passes unmodified. Pure.
 */
export const rewriteHead = (host: string, head: string): string => {
  const [first = "", ...lines] = head.split("\r\n");
  const isUpgrade = lines.some((line) => /^upgrade:/i.test(line));
  const keptLines = lines.filter((line) => !/^host:/i.test(line) && (isUpgrade || !/^connection:/i.test(line)));
  return [first, `Host: ${host}`, ...keptLines, ...(isUpgrade ? [] : ["Connection: close"])].join("\r\n");
};

/** Normalizes an IPv4 address that arrives on an IPv6 socket. */
const normalizeAddress = (address: string | undefined): string => (address ?? "").replace(/^::ffff:/, "");

const getHost = ({ hostname }: URL): string =>
  hostname === "localhost" ? "127.0.0.1" : hostname.replace(/^\[|\]$/g, "");
