// Handles requests that nodes of a cluster forward to each other. A node handles only requests of its own shards. For others it names the
// owner before doing anything, and the forwarding node asks that one.
import { FIRST_SHARD, type Shards } from "#base/shards.ts";
import type { ApiContext } from "../../context.ts";
import type { Destination, Placement } from "./placement.ts";

type OwnRequestDeps = {
  readonly placement: Pick<Placement, "shardOf">;
  /** Returns and removes the client address that a node has set in this request; undefined if none exists. */
  takeForwardedAddress(request: Request): string | undefined;
  handle(request: Request): Promise<Response>;
  /** Responds for a shard that another node owns. */
  decline(request: Request, shard: number): Promise<Response>;
  /** Returns whether the request is a health check, which each node answers for itself. */
  isProbe(request: Request): boolean;
  /** Returns whether this node accepts no new work. */
  isClosed(): boolean;
};

type OwnRequestContext = Pick<ApiContext, "sockets" | "streams" | "requests"> & {
  readonly shards: Shards;
};

const isStream = ({ method }: Request, { headers }: Response): boolean =>
  method === "GET" && headers.get("content-type")?.startsWith("text/event-stream") === true;

/** Creates the handler for requests that nodes forward, including this node. All other requests are rejected. */
export const ownRequests = (
  ctx: OwnRequestContext,
  { placement, takeForwardedAddress, handle, decline, isProbe, isClosed }: OwnRequestDeps,
) => {
  const { shards } = ctx;
  /** While this node accepts no new work, requests that any node can handle go to the first node. */
  const isHere = (destination: Destination): boolean =>
    !isClosed() && (destination === "here" || shards.has(destination));
  return async (request: Request): Promise<Response> => {
    const client = takeForwardedAddress(request);
    if (client === undefined) return new Response(null, { status: 403 });
    const destination = isProbe(request) ? undefined : await placement.shardOf(request);
    if (destination !== undefined) {
      if (!isHere(destination)) return await decline(request, destination === "here" ? FIRST_SHARD : destination);
      ctx.requests.assign(request, destination);
      ctx.sockets.assign(request, destination);
      ctx.streams.assign(request, destination);
    }
    ctx.requests.setPeer(request, client);
    const response = await handle(request);
    // The shard moved away in the meantime, so this stream would receive nothing more; the shard's new owner opens it again.
    const canRepeat = isStream(request, response) || ctx.streams.isPoll(request);
    const hasMovedAway = canRepeat && typeof destination === "number" && !shards.has(destination);
    // Or the first write was rejected because the shard had moved, and nothing else was done.
    if (typeof destination === "number" && (hasMovedAway || ctx.requests.belongsElsewhere(request))) {
      await response.body?.cancel();
      return await decline(request, destination);
    }
    // Each connection carries one request, even when an upgrade was rejected. The header tells the client not to send a second one.
    response.headers.set("connection", "close");
    return response;
  };
};
