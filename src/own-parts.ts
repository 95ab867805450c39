// What a node answers where several are active: what belongs to its parts. Of all else it says whose it is, before anything is begun, for the
// node that has passed it here to ask that one.
import type { Operations } from "./api/http/operations.ts";
import { Placement } from "./api/http/placement.ts";
import type { TakeNamed } from "./cluster/passed-on.ts";
import type { Context } from "./context/context.ts";

type Own = {
  readonly operations: Operations;
  readonly takeNamed: TakeNamed;
  handle(request: Request): Promise<Response>;
  /** Asked of each node for itself. */
  isProbe(request: Request): boolean;
  /** Whether this node begins nothing now. */
  isClosed(): boolean;
};

/** A handler of requests that nodes pass on, this one among them. Nobody else is answered. */
export const ownParts = (ctx: Context, { operations, takeNamed, handle, isProbe, isClosed }: Own) => {
  const { store, clock, config, encryption, membership, partIndex: index } = ctx;
  if (!index) throw new Error("a node that has parts knows what is of them");
  const accessUrl = (): URL => ctx.accessUrl;
  const placement = new Placement({ store, clock, index, operations, config, accessUrl });
  return async (request: Request): Promise<Response> => {
    const client = takeNamed(request);
    if (client === undefined || !membership) return new Response(null, { status: 403 });
    if (!isProbe(request)) {
      const place = await placement.partOf(request);
      const isHere = place === "here" || ctx.parts.has(place);
      // What any node does is asked of the first one while this one begins nothing.
      if (isClosed() || !isHere) return await membership.elsewhere(request, encryption, place === "here" ? 0 : place);
      ctx.sockets.belongs(request, place);
    }
    ctx.requests.passedOnFor(request, client);
    const response = await handle(request);
    // One request comes on each connection, also where it asked for an upgrade that it did not get: the client has to know that there is no second.
    response.headers.set("connection", "close");
    return response;
  };
};
