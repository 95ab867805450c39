// The Tailnet service for one connection, an agent's or a client's (facts/wire 2). The peer's rules define what it may do.
import { uuidFromBytes } from "#base/ids.ts";
import { buildDerpMap, type Peer, type PeerOptions } from "#src/tailnet/index.ts";
import { RpcError, type TailnetHandlers, toDuration, toTimestamp } from "#src/wire/index.ts";
import type { ApiContext } from "../context.ts";
import { makeResumeToken } from "./resume-token.ts";
import { streamWorkspaceUpdates } from "./workspace-updates.ts";

export type TailnetCaller = {
  /** Its identity in the network and its permissions there. */
  peer: PeerOptions;
  /** Who may resume as this peer, and where. */
  holder: string;
  /** Returns whether the peer may follow this owner's workspaces. Absent for agents and for clients of a single agent. */
  mayFollow?(owner_id: string): boolean;
  /** Called with the peer of each new Coordinate stream. */
  onJoined?(peer: Peer): void;
};

export const tailnetService = (ctx: ApiContext, caller: TailnetCaller): TailnetHandlers => ({
  postTelemetry: () => ({}),

  async *streamDERPMaps(_request, { signal }) {
    yield buildDerpMap(ctx.accessUrl);
    // The map never changes while the server runs; the stream stays open because peers expect it.
    if (!signal.aborted) await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
  },

  refreshResumeToken() {
    const resumeToken = makeResumeToken(ctx.encryption, caller.peer.id, caller.holder, ctx.clock.now());
    const { token, refresh_in_seconds, expires_at } = resumeToken;
    return { token, refreshIn: toDuration(refresh_in_seconds), expiresAt: toTimestamp(expires_at) };
  },

  coordinate: (requests, { signal }) =>
    ctx.tailnet.coordinator.serve(caller.peer, requests, signal, (peer) => caller.onJoined?.(peer)),

  async *workspaceUpdates({ workspaceOwnerId }, { signal }) {
    const { mayFollow } = caller;
    const owner_id = workspaceOwnerId.byteLength === 16 ? uuidFromBytes(workspaceOwnerId) : "";
    if (!mayFollow?.(owner_id))
      throw new RpcError(0, "The owner does not exist or you may not follow their workspaces.");
    yield* streamWorkspaceUpdates(ctx, owner_id, signal);
  },
});
