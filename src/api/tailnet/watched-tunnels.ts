// The tunnels of one client. Each is authorized separately, and ends when its user loses access to the workspace or the key becomes
// invalid. A client that disconnects uncleanly keeps its tunnels for some time, so its access is watched for as long. [TL-12] [TL-28]
import { canUseWorkspace } from "#domain/access.ts";
import { findAgentById, toWorkspace } from "#domain/agents/find.ts";
import { makeWorkspaceAccess } from "#domain/live-access.ts";
import { createClientRules, LOST_TTL_MS, type Peer, type PeerOptions } from "#src/tailnet/index.ts";
import type { ApiContext } from "../context.ts";
import type { UserCaller } from "../http/caller.ts";
import { toConnectedBy } from "../http/connected-by.ts";
import { watchAccess } from "../http/revocation.ts";

const ACCESS_DENIED = "agent not found or you do not have permission";

export class WatchedTunnels {
  readonly #ctx: ApiContext;
  readonly #caller: UserCaller;
  /** The only agent that the client can have a tunnel to; undefined for all agents that its user can access. */
  readonly #onlyAgentId: string | undefined;
  readonly #watches = new Map<string, () => void>();
  #peer: Peer | undefined;
  #isOver = false;

  constructor(ctx: ApiContext, caller: UserCaller, onlyAgentId?: string) {
    this.#ctx = ctx;
    this.#caller = caller;
    this.#onlyAgentId = onlyAgentId;
  }

  /** Returns the client's peer options for the coordinator. */
  makePeerOptions(id: string, request: Request): PeerOptions {
    const holder = toConnectedBy(this.#ctx, this.#caller, request);
    return { id, holder, isWatched: true, rules: createClientRules((agent_id) => this.#findRefusal(agent_id)) };
  }

  setPeer(peer: Peer): void {
    this.#peer = peer;
  }

  /** Called when the connection has closed. */
  stop(): void {
    this.#isOver = true;
    const { coordinator } = this.#ctx.tailnet;
    const peer = this.#peer;
    peer?.onStreamLost();
    const stopWatching = (): void => {
      for (const stop of this.#watches.values()) stop();
      this.#watches.clear();
    };
    if (!peer || !coordinator.isLost(peer.id)) {
      stopWatching();
      return;
    }
    this.#ctx.clock.after(LOST_TTL_MS, () => {
      stopWatching();
      coordinator.releaseLost(peer.id);
    });
  }

  /** Returns the reason why the user cannot access this agent; undefined when they can. */
  async #findRefusal(agent_id: string): Promise<string | undefined> {
    if (this.#onlyAgentId !== undefined && agent_id !== this.#onlyAgentId)
      return "this connection is for one agent only";
    if (this.#watches.has(agent_id)) return undefined;
    const agent = await findAgentById(this.#ctx.store, agent_id);
    if (!agent || agent.deleted || !canUseWorkspace(this.#caller, toWorkspace(agent))) return ACCESS_DENIED;
    if (this.#isOver || this.#watches.has(agent_id)) return undefined;
    const access = makeWorkspaceAccess(this.#ctx, agent.workspace_id, canUseWorkspace);
    const stop = watchAccess(this.#ctx, this.#caller, access, () => {
      this.#watches.delete(agent_id);
      this.#peer?.closeTunnel(agent_id);
    });
    this.#watches.set(agent_id, stop);
    return undefined;
  }
}
