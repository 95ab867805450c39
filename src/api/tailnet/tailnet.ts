// `GET /tailnet`: a client of the network of all the agents its user may enter (facts/wire 2.1). Each tunnel is judged by itself and ends
// when its user may no longer enter that workspace; the connection ends with the key. [TL-12]
import { Elysia } from "elysia";
import { isOwner, mayUseWorkspace } from "#domain/access.ts";
import { placeOf } from "#domain/agents/find.ts";
import { workspaceAccess } from "#domain/live-access.ts";
import type { Peer } from "#src/tailnet/peer.ts";
import { clientRules } from "#src/tailnet/peer-rules.ts";
import type { ApiContext } from "../context.ts";
import { callers, type UserCaller } from "../http/caller.ts";
import { fails, Upgraded } from "../http/responses.ts";
import { closeWhenKeyGone, whenAccessLost } from "../http/revocation.ts";
import { ClientConnection } from "./client-connection.ts";
import { checkVersion, clientQuery, peerId } from "./client-peer.ts";

export const tailnet = (ctx: ApiContext) =>
  new Elysia().use(callers).get(
    "/tailnet",
    ({ caller, query, request }) => {
      checkVersion(query.version ?? "2.0");
      const holder = `tailnet:${caller.user_id}`;
      const tunnels = new WatchedTunnels(ctx, caller);
      const connection = new ClientConnection(
        ctx,
        {
          peer: { id: peerId(ctx, holder, query.resume_token), rules: clientRules((id) => tunnels.refuse(id)) },
          holder,
          mayFollow: (owner_id) => owner_id === caller.user_id || isOwner(caller),
          joined: (peer) => tunnels.belongTo(peer),
        },
        () => tunnels.stop(),
      );
      return ctx.sockets.upgrade(request, closeWhenKeyGone(ctx, caller, connection), { who: caller.user_id });
    },
    {
      user: true,
      query: clientQuery("2.0"),
      response: { 101: Upgraded, ...fails(400, 401, 503) },
      detail: {
        tags: ["Agents"],
        summary: "Join the network of all agents",
        description:
          "A WebSocket of binary messages carrying yamux streams with DRPC and protobuf: the Tailnet service, for tunnels to every agent whose workspace the user may enter, and the updates of the user's workspaces. A tunnel ends when access to its workspace does; 1008 when the key counts no more.",
      },
    },
  );

const REFUSED = "agent not found or you do not have permission";

/** Judges tunnels and goes on watching those it let through. */
class WatchedTunnels {
  readonly #ctx: ApiContext;
  readonly #caller: UserCaller;
  readonly #watches = new Map<string, () => void>();
  #peer: Peer | undefined;
  #over = false;

  constructor(ctx: ApiContext, caller: UserCaller) {
    this.#ctx = ctx;
    this.#caller = caller;
  }

  belongTo(peer: Peer): void {
    this.#peer = peer;
  }

  /** The reason why this agent is out of reach; undefined when it is not. */
  async refuse(agent_id: string): Promise<string | undefined> {
    if (this.#watches.has(agent_id)) return undefined;
    const place = await placeOf(this.#ctx.store, agent_id);
    if (!place || place.deleted || !mayUseWorkspace(this.#caller, place)) return REFUSED;
    if (this.#over || this.#watches.has(agent_id)) return undefined;
    const access = workspaceAccess(this.#ctx, place.workspace_id, mayUseWorkspace);
    const stop = whenAccessLost(this.#ctx, this.#caller, access, () => {
      this.#watches.delete(agent_id);
      this.#peer?.closeTunnel(agent_id);
    });
    this.#watches.set(agent_id, stop);
    return undefined;
  }

  stop(): void {
    this.#over = true;
    for (const stop of this.#watches.values()) stop();
    this.#watches.clear();
  }
}
