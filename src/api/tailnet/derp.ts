// `/derp`: the embedded relay as a WebSocket, and its latency probe (facts/wire 3.1). Requires no token, because a client proves its key
// inside. Rejects the plain `Upgrade: DERP` with 426, after which clients use the WebSocket (why: src/tailnet/README.md).
import { t } from "elysia";
import { AppError } from "#base/errors.ts";
import { toNetwork } from "#domain/users/throttle.ts";
import type { Relay, RelayClient } from "#src/tailnet/index.ts";
import type { ApiContext } from "../context.ts";
import { operation } from "../http/operation.ts";
import { fails, Upgraded } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { RELEASE_TIMEOUT_MS, type Socket, type SocketHandler } from "../http/socket.ts";

const tags = ["General"];
const PROTOCOL = "derp";
/** Connections with one announced key: a client that reconnects has two for a moment. */
const MAX_PER_KEY = 2;

export const derp = (ctx: ApiContext) => {
  const unknownClients = new UnknownClients(ctx);
  return routes()
    .get(
      "/derp",
      ({ request, set }) => {
        const upgrade = request.headers.get("upgrade")?.toLowerCase();
        const protocols = request.headers.get("sec-websocket-protocol")?.split(",") ?? [];
        if (upgrade !== "websocket" || !protocols.some((one) => one.trim().toLowerCase() === PROTOCOL)) {
          set.headers.upgrade = "websocket";
          throw new AppError("upgrade_required", "This is a relay: connect with a WebSocket of the subprotocol derp.");
        }
        const holder = `derp:${toNetwork(ctx.addresses.of(request))}`;
        const headers = { "sec-websocket-protocol": PROTOCOL };
        return ctx.sockets.upgrade(request, new RelayConnection(ctx.tailnet.relay, unknownClients, holder), {
          who: holder,
          headers,
        });
      },
      {
        response: { 101: Upgraded, ...fails(400, 426, 503) },
        detail: operation({
          tags,
          operationId: "connectRelay",
          access: "anyone",
          summary: "Connect to the relay",
          description:
            "A WebSocket with the subprotocol `derp`. Its binary messages form one stream of relay frames. Returns 426 for any other kind of request.",
          security: [],
        }),
      },
    )
    .get("/derp/latency-check", () => new Response(null), {
      response: { 200: t.Void({ description: "An empty response. The response time is the result." }) },
      detail: operation({
        tags,
        operationId: "measureRelayLatency",
        access: "anyone",
        summary: "Measure relay latency",
        security: [],
      }),
    });
};

/**
 * Limits relay clients whose keys no peer of the coordinator has announced. Anyone can connect as one, and each can leave a long message
 * unfinished in memory. Beyond the limit, the oldest is cut off, because it had the most time to announce its key.
 */
class UnknownClients {
  readonly #ctx: ApiContext;
  readonly #unannounced = new Map<RelayConnection, Socket>();
  /** Connections whose keys were announced, by key, oldest first. */
  readonly #announced = new Map<string, Map<RelayConnection, Socket>>();
  /** Number of closed connections that may still be in memory, by network address. */
  readonly #closed = new Map<string, number>();

  constructor(ctx: ApiContext) {
    this.#ctx = ctx;
  }

  add(connection: RelayConnection, socket: Socket): void {
    const { sockets, tailnet } = this.#ctx;
    // In a cluster, a peer announces its key to the node of its agent, which may not be this one.
    if (tailnet.relay.others) return;
    for (const [key, clients] of this.#announced)
      if (!tailnet.coordinator.isAnnounced(key)) this.#markUnannounced(key, clients);
    for (const [client, clientSocket] of this.#unannounced)
      if (tailnet.coordinator.isAnnounced(client.address)) this.#markAnnounced(client, clientSocket);
    // Closed connections of one address must not keep out the clients of others.
    if ((this.#closed.get(connection.holder) ?? 0) >= sockets.maxAnonymous / 2) {
      socket.terminate();
      return;
    }
    this.#unannounced.set(connection, socket);
    for (const [oldestConnection, oldestSocket] of this.#unannounced) {
      if (this.#unannounced.size <= sockets.maxAnonymous) return;
      this.#unannounced.delete(oldestConnection);
      oldestSocket.terminate();
    }
  }

  /**
   * Moves a client to those with announced keys, and counts its memory for the user who announced the key: one person can announce many keys. Anyone
   * who knows a key could open any number of connections with it.
   */
  #markAnnounced(connection: RelayConnection, socket: Socket): void {
    this.#unannounced.delete(connection);
    const holder = this.#ctx.tailnet.coordinator.findMemoryHolder(connection.address);
    if (holder !== undefined) socket.moveTo(holder);
    const connections = this.#announced.get(connection.address) ?? new Map<RelayConnection, Socket>();
    this.#announced.set(connection.address, connections.set(connection, socket));
    if (connections.size > MAX_PER_KEY) [...connections.values()][0]?.terminate();
  }

  /** Moves clients back to the unknown ones, because their key is no longer announced. */
  #markUnannounced(key: string, clients: ReadonlyMap<RelayConnection, Socket>): void {
    this.#announced.delete(key);
    for (const [client, socket] of clients) this.#unannounced.set(client, socket);
  }

  delete(connection: RelayConnection): void {
    const { clock, tailnet } = this.#ctx;
    const connections = this.#announced.get(connection.address);
    if (connections?.delete(connection) && connections.size === 0) this.#announced.delete(connection.address);
    if (!this.#unannounced.delete(connection) || tailnet.coordinator.isAnnounced(connection.address)) return;
    this.#countClosed(connection.holder, 1);
    clock.after(RELEASE_TIMEOUT_MS, () => this.#countClosed(connection.holder, -1));
  }

  #countClosed(holder: string, change: 1 | -1): void {
    const count = (this.#closed.get(holder) ?? 0) + change;
    if (count === 0) this.#closed.delete(holder);
    else this.#closed.set(holder, count);
  }
}

class RelayConnection implements SocketHandler {
  readonly #relay: Relay;
  readonly #unknown: UnknownClients;
  readonly holder: string;
  #client: RelayClient | undefined;

  constructor(relay: Relay, unknown: UnknownClients, holder: string) {
    this.#relay = relay;
    this.#unknown = unknown;
    this.holder = holder;
  }

  /** The client's key in hex; empty before it is proved. */
  get address(): string {
    return this.#client?.address ?? "";
  }

  open(socket: Socket): void {
    this.#client = this.#relay.connect(socket);
    this.#unknown.add(this, socket);
  }

  message(_socket: Socket, data: string | Uint8Array): void {
    this.#client?.push(data);
  }

  drain(): void {
    this.#client?.drain();
  }

  close(): void {
    this.#unknown.delete(this);
    this.#client?.end();
  }
}
