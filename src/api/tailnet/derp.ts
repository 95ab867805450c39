// `/derp`: the embedded relay as a WebSocket, and its latency probe (facts/wire 3.1). Requires no token, because a client proves its key
// inside. Rejects the plain `Upgrade: DERP` with 426, after which clients use the WebSocket (why: src/tailnet/README.md).
import { t } from "elysia";
import { AppError } from "#base/errors.ts";
import type { Relay, RelayClient } from "#src/tailnet/index.ts";
import type { ApiContext } from "../context.ts";
import { operation } from "../http/operation.ts";
import { fails, Upgraded } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import type { Socket, SocketHandler } from "../http/socket.ts";

const tags = ["General"];
const PROTOCOL = "derp";

export const derp = (ctx: ApiContext) =>
  routes()
    .get(
      "/derp",
      ({ request, set }) => {
        const asked = request.headers.get("upgrade")?.toLowerCase();
        const protocols = request.headers.get("sec-websocket-protocol")?.split(",") ?? [];
        if (asked !== "websocket" || !protocols.some((one) => one.trim().toLowerCase() === PROTOCOL)) {
          set.headers.upgrade = "websocket";
          throw new AppError("upgrade_required", "This is a relay: connect with a WebSocket of the subprotocol derp.");
        }
        const who = `derp:${ctx.addresses.of(request)}`;
        const headers = { "sec-websocket-protocol": PROTOCOL };
        return ctx.sockets.upgrade(request, new RelayConnection(ctx.tailnet.relay), { who, headers });
      },
      {
        response: { 101: Upgraded, ...fails(400, 426, 503) },
        detail: operation({
          tags,
          operationId: "connectRelay",
          access: "anyone",
          summary: "Connect to the relay",
          description:
            "A WebSocket of the subprotocol `derp`: binary messages forming one stream of relay frames. 426 for any other kind of request.",
          security: [],
        }),
      },
    )
    .get("/derp/latency-check", () => new Response(null), {
      response: { 200: t.Void({ description: "Empty; the response time is the result." }) },
      detail: operation({
        tags,
        operationId: "measureRelayLatency",
        access: "anyone",
        summary: "Measure relay latency",
        security: [],
      }),
    });

class RelayConnection implements SocketHandler {
  readonly #relay: Relay;
  #client: RelayClient | undefined;

  constructor(relay: Relay) {
    this.#relay = relay;
  }

  open(socket: Socket): void {
    this.#client = this.#relay.connect(socket);
  }

  message(_socket: Socket, data: string | Uint8Array): void {
    this.#client?.push(data);
  }

  drain(): void {
    this.#client?.drain();
  }

  close(): void {
    this.#client?.end();
  }
}
