// The Tailnet service for one connection, an agent's or a client's (facts/wire 2). What its peer may do is in its rules.
import { uuidFromBytes } from "#base/ids.ts";
import { derpMap, type Peer, type PeerOptions } from "#src/tailnet/index.ts";
import { RpcError, seconds, type TailnetHandlers, toTimestamp } from "#src/wire/index.ts";
import type { ApiContext } from "../context.ts";
import { makeResumeToken } from "./resume-token.ts";
import { workspaceUpdates } from "./workspace-updates.ts";

export type TailnetCaller = {
  /** Who it is in the network, and what it may do there. */
  peer: PeerOptions;
  /** Who may return as this peer, and where. */
  holder: string;
  /** Whether it may follow the workspaces of this owner. Absent for agents and for clients of a single agent. */
  mayFollow?(owner_id: string): boolean;
  /** Told of the peer of each new Coordinate stream. */
  joined?(peer: Peer): void;
};

export const tailnetService = (ctx: ApiContext, caller: TailnetCaller): TailnetHandlers => ({
  postTelemetry: () => ({}),

  async *streamDERPMaps(_request, { signal }) {
    yield derpMap(ctx.accessUrl);
    // The map never changes while the server runs; the stream stays open as peers expect.
    if (!signal.aborted) await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
  },

  refreshResumeToken() {
    const made = makeResumeToken(ctx.encryption, caller.peer.id, caller.holder, ctx.clock.now());
    const { token, refresh_in_seconds, expires_at } = made;
    return { token, refreshIn: seconds(refresh_in_seconds), expiresAt: toTimestamp(expires_at) };
  },

  coordinate: (requests, { signal }) =>
    ctx.tailnet.coordinator.serve(caller.peer, requests, signal, (peer) => caller.joined?.(peer)),

  async *workspaceUpdates({ workspaceOwnerId }, { signal }) {
    const { mayFollow } = caller;
    const owner_id = workspaceOwnerId.byteLength === 16 ? uuidFromBytes(workspaceOwnerId) : "";
    if (!mayFollow?.(owner_id))
      throw new RpcError(0, "The owner does not exist or you may not follow their workspaces.");
    yield* workspaceUpdates(ctx, owner_id, signal);
  },
});
