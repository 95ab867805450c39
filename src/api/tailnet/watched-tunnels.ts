// The tunnels of one client: each is judged on its own, and ends when its user may no longer enter that workspace or the key counts no more. A
// client that was lost without a farewell may keep its tunnels for a while, so its access is watched for as long. [TL-12] [TL-28]
import { mayUseWorkspace } from "#domain/access.ts";
import { findAgentById, toWorkspace } from "#domain/agents/find.ts";
import { workspaceAccess } from "#domain/live-access.ts";
import { clientRules, LOST_MS, type Peer, type PeerOptions } from "#src/tailnet/index.ts";
import type { ApiContext } from "../context.ts";
import type { UserCaller } from "../http/caller.ts";
import { connectedBy } from "../http/connected-by.ts";
import { whenAccessLost } from "../http/revocation.ts";

const REFUSED = "agent not found or you do not have permission";

export class WatchedTunnels {
  readonly #ctx: ApiContext;
  readonly #caller: UserCaller;
  /** The only agent it may have a tunnel to; undefined for all that its user may enter. */
  readonly #only: string | undefined;
  readonly #watches = new Map<string, () => void>();
  #peer: Peer | undefined;
  #over = false;

  constructor(ctx: ApiContext, caller: UserCaller, only?: string) {
    this.#ctx = ctx;
    this.#caller = caller;
    this.#only = only;
  }

  /** What the client is at the coordinator. */
  peer(id: string, request: Request): PeerOptions {
    const holder = connectedBy(this.#ctx, this.#caller, request);
    return { id, holder, isWatched: true, rules: clientRules((agent_id) => this.#refuse(agent_id)) };
  }

  belongTo(peer: Peer): void {
    this.#peer = peer;
  }

  /** The connection has disconnected. */
  stop(): void {
    this.#over = true;
    const { coordinator } = this.#ctx.tailnet;
    const peer = this.#peer;
    peer?.lost();
    const end = (): void => {
      for (const stop of this.#watches.values()) stop();
      this.#watches.clear();
    };
    if (!peer || !coordinator.isLost(peer.id)) {
      end();
      return;
    }
    this.#ctx.clock.after(LOST_MS, () => {
      end();
      coordinator.forgetLost(peer.id);
    });
  }

  /** The reason why this agent is out of reach; undefined when it is not. */
  async #refuse(agent_id: string): Promise<string | undefined> {
    if (this.#only !== undefined && agent_id !== this.#only) return "this connection is for one agent only";
    if (this.#watches.has(agent_id)) return undefined;
    const place = await findAgentById(this.#ctx.store, agent_id);
    if (!place || place.deleted || !mayUseWorkspace(this.#caller, toWorkspace(place))) return REFUSED;
    if (this.#over || this.#watches.has(agent_id)) return undefined;
    const access = workspaceAccess(this.#ctx, place.workspace_id, mayUseWorkspace);
    const stop = whenAccessLost(this.#ctx, this.#caller, access, () => {
      this.#watches.delete(agent_id);
      this.#peer?.closeTunnel(agent_id);
    });
    this.#watches.set(agent_id, stop);
    return undefined;
  }
}
