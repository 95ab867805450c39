// `GET /tailnet`: a client of the network of all agents its user can access (facts/wire 2.1). Each tunnel is authorized separately and ends
// when its user loses access to that workspace; the connection ends with the key. [TL-12]
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, Upgraded } from "../http/responses.ts";
import { closeWhenKeyRevoked } from "../http/revocation.ts";
import { routes } from "../http/routes.ts";
import { ClientConnection } from "./client-connection.ts";
import { checkVersion, clientQuery, resolvePeerId } from "./client-peer.ts";
import { WatchedTunnels } from "./watched-tunnels.ts";

export const tailnet = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/tailnet",
      ({ caller, query, request }) => {
        checkVersion(query.version ?? "2.0");
        const holder = `tailnet:${caller.user_id}`;
        const tunnels = new WatchedTunnels(ctx, caller);
        const connection = new ClientConnection(
          ctx,
          {
            peer: tunnels.makePeerOptions(resolvePeerId(ctx, holder, query.resume_token), request),
            holder,
            follower: caller,
            onJoined: (peer) => tunnels.setPeer(peer),
          },
          () => tunnels.stop(),
        );
        return ctx.sockets.upgrade(request, closeWhenKeyRevoked(ctx, caller, connection), { who: caller.user_id });
      },
      {
        user: true,
        query: clientQuery("2.0"),
        response: { 101: Upgraded, ...fails(400, 401, 503) },
        detail: operation({
          tags: ["Agents"],
          operationId: "joinTailnet",
          summary: "Join the network of all agents",
          description:
            "A WebSocket of binary messages that carry yamux streams with DRPC and protobuf: the Tailnet service, for tunnels to every agent whose workspace the user can access, and updates of the user's workspaces. A tunnel closes when access to its workspace ends. Closes with 1008 when the key is revoked or expires.",
          access: "users",
          scope: "workspace:ssh",
        }),
      },
    );
