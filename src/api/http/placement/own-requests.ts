// Handles requests that nodes of a cluster forward to each other. A node handles only requests of its own parts. For others it names the
// owner before doing anything, and the forwarding node asks that one.
import { FIRST_PART, type Parts } from "#base/parts.ts";
import type { ApiContext } from "../../context.ts";
import type { Destination, Placement } from "./placement.ts";

type OwnRequestDeps = {
  readonly placement: Pick<Placement, "partOf">;
  /** Returns and removes the client address that a node has set in this request; undefined if none exists. */
  takeNamed(request: Request): string | undefined;
  handle(request: Request): Promise<Response>;
  /** Responds for a part that another node owns. */
  elsewhere(request: Request, part: number): Promise<Response>;
  /** Returns whether the request is a health check, which each node answers for itself. */
  isProbe(request: Request): boolean;
  /** Returns whether this node accepts no new work. */
  isClosed(): boolean;
};

type OwnRequestContext = Pick<ApiContext, "sockets" | "streams" | "requests"> & {
  readonly parts: Parts;
};

const isStream = ({ method }: Request, { headers }: Response): boolean =>
  method === "GET" && headers.get("content-type")?.startsWith("text/event-stream") === true;

/** Creates the handler for requests that nodes forward, including this node. All other requests are rejected. */
export const ownRequests = (
  ctx: OwnRequestContext,
  { placement, takeNamed, handle, elsewhere, isProbe, isClosed }: OwnRequestDeps,
) => {
  const { parts } = ctx;
  /** While this node accepts no new work, requests that any node can handle go to the first node. */
  const isHere = (place: Destination): boolean => !isClosed() && (place === "here" || parts.has(place));
  return async (request: Request): Promise<Response> => {
    const client = takeNamed(request);
    if (client === undefined) return new Response(null, { status: 403 });
    const place = isProbe(request) ? undefined : await placement.partOf(request);
    if (place !== undefined) {
      if (!isHere(place)) return await elsewhere(request, place === "here" ? FIRST_PART : place);
      ctx.requests.assign(request, place);
      ctx.sockets.assign(request, place);
      ctx.streams.assign(request, place);
    }
    ctx.requests.setPeer(request, client);
    const response = await handle(request);
    // The part moved away in the meantime, so this stream would receive nothing more; the part's new owner opens it again.
    const isAgain = isStream(request, response) || ctx.streams.isPoll(request);
    const isLate = isAgain && typeof place === "number" && !parts.has(place);
    // Or the first write was rejected because the part had moved, and nothing else was done.
    if (typeof place === "number" && (isLate || ctx.requests.belongsElsewhere(request))) {
      await response.body?.cancel();
      return await elsewhere(request, place);
    }
    // Each connection carries one request, even when an upgrade was rejected. The header tells the client not to send a second one.
    response.headers.set("connection", "close");
    return response;
  };
};
