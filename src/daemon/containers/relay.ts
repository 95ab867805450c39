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
const MAX_HEAD = 64 * 1024;

export class Relay implements Disposable {
  /** The server's URL for the container. */
  readonly url: URL;
  readonly #server: Server;
  readonly #open: Set<Socket>;

  private constructor(url: URL, server: Server, open: Set<Socket>) {
    this.url = url;
    this.#server = server;
    this.#open = open;
  }

  /** Rejects with a readable message if the address cannot be bound, because the engine runs on another machine. */
  static async listen(target: URL, { gateway, address }: { gateway: string; address: string }): Promise<Relay> {
    const open = new Set<Socket>();
    const server = createServer({ allowHalfOpen: true }, (inside) => {
      if (normalizeAddress(inside.remoteAddress) !== normalizeAddress(address) || open.size >= MAX_CONNECTIONS) {
        inside.destroy();
        return;
      }
      const upstream = connect({ host: getHost(target), port: Number(target.port) || 80, allowHalfOpen: true });
      for (const [one, other] of [[inside, upstream] as const, [upstream, inside] as const]) {
        open.add(inside);
        one.on("error", () => other.destroy());
        one.on("close", () => {
          open.delete(one);
          other.destroy();
        });
      }
      upstream.pipe(inside);
      forward(inside, upstream, target.host);
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
    const bound = server.address();
    const port = typeof bound === "object" && bound !== null ? bound.port : 0;
    const url = new URL(target);
    url.hostname = gateway.includes(":") ? `[${gateway}]` : gateway;
    url.port = String(port);
    return new Relay(url, server, open);
  }

  [Symbol.dispose](): void {
    this.#server.close();
    for (const socket of this.#open) socket.destroy();
  }
}

/** Forwards all bytes, with the server's own host name in the first request, since the server accepts no other. */
const forward = (inside: Socket, outside: Socket, host: string): void => {
  let head = Buffer.alloc(0);
  const read = (chunk: Buffer): void => {
    head = Buffer.concat([head, chunk]);
    const end = head.indexOf("\r\n\r\n");
    if (end < 0 && head.length > MAX_HEAD) inside.destroy();
    if (end < 0) return;
    inside.off("data", read);
    inside.pause();
    outside.write(rewriteHead(host, head.subarray(0, end).toString("latin1")), "latin1");
    outside.write(head.subarray(end));
    inside.pipe(outside);
  };
  inside.on("data", read);
};

/**
 * Rewrites the head of a request for `host`. Unless the request upgrades the connection, it becomes the only one on it, so that no request
 * passes unmodified. Pure.
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
