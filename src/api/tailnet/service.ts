// The Tailnet service for one connection, an agent's or a client's (facts/wire 2). The peer's rules define what it may do.
import { uuidFromBytes } from "#base/ids.ts";
import { isOwner } from "#domain/access.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { hasScope } from "#schema/users/scopes.ts";
import { buildDerpMap, type Peer, type PeerOptions } from "#src/tailnet/index.ts";
import { RpcError, type TailnetHandlers, toDuration, toTimestamp } from "#src/wire/index.ts";
import type { ApiContext } from "../context.ts";
import { watchAccess } from "../http/revocation.ts";
import { makeResumeToken } from "./resume-token.ts";
import { streamWorkspaceUpdates } from "./workspace-updates.ts";

export type TailnetCaller = {
  /** The peer's identity and permissions in the network. */
  peer: PeerOptions;
  /** Who may resume as this peer, and where. */
  holder: string;
  /** The user whose access decides which workspaces the peer may follow. Absent for agents and for clients of a single agent. */
  follower?: UserCaller;
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
    const { follower } = caller;
    const owner_id = workspaceOwnerId.byteLength === 16 ? uuidFromBytes(workspaceOwnerId) : "";
    const mayFollow = (user: UserCaller): boolean => owner_id === user.user_id || isOwner(user);
    if (!follower || !mayFollow(follower))
      throw new RpcError(0, "The owner does not exist or you may not follow their workspaces.");
    if (!hasScope(follower.scopes, "workspace:read"))
      throw new RpcError(0, "Following workspaces requires a key with the scope workspace:read.");
    const lost = new AbortController();
    const access = {
      key: `follow ${owner_id}`,
      topic: owner_id,
      lossReason: "you may no longer follow these workspaces",
      isStillAllowed: async (user: UserCaller) => mayFollow(user),
    };
    const stop = watchAccess(ctx, follower, access, () => lost.abort());
    try {
      yield* streamWorkspaceUpdates(ctx, { owner_id, caller: follower }, AbortSignal.any([signal, lost.signal]));
    } finally {
      stop();
    }
  },
});
