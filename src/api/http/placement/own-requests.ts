// What a node answers where several are active: what belongs to its parts. Of all else it says whose it is, before anything is begun, for the
// node that has passed it here to ask that one.
import { FIRST_PART, type Parts } from "#base/parts.ts";
import type { ApiContext } from "../../context.ts";
import type { Place, Placement } from "./placement.ts";

type Own = {
  readonly placement: Pick<Placement, "partOf">;
  /** The client's address that a node has named in this request; undefined where none has. */
  takeNamed(request: Request): string | undefined;
  handle(request: Request): Promise<Response>;
  /** What another node than the one that has the part answers. */
  elsewhere(request: Request, part: number): Promise<Response>;
  /** Asked of each node for itself. */
  isProbe(request: Request): boolean;
  /** Whether this node begins nothing now. */
  isClosed(): boolean;
};

type Needs = Pick<ApiContext, "sockets" | "streams" | "requests"> & {
  readonly parts: Parts;
};

const isStream = ({ method }: Request, { headers }: Response): boolean =>
  method === "GET" && headers.get("content-type")?.startsWith("text/event-stream") === true;

/** A handler of requests that nodes pass on, this one among them. Nobody else is answered. */
export const ownRequests = (ctx: Needs, { placement, takeNamed, handle, elsewhere, isProbe, isClosed }: Own) => {
  const { parts } = ctx;
  /** What any node does is asked of the first one while this one begins nothing. */
  const isHere = (place: Place): boolean => !isClosed() && (place === "here" || parts.has(place));
  return async (request: Request): Promise<Response> => {
    const client = takeNamed(request);
    if (client === undefined) return new Response(null, { status: 403 });
    const place = isProbe(request) ? undefined : await placement.partOf(request);
    if (place !== undefined) {
      if (!isHere(place)) return await elsewhere(request, place === "here" ? FIRST_PART : place);
      ctx.requests.belongs(request, place);
      ctx.sockets.belongs(request, place);
      ctx.streams.belongs(request, place);
    }
    ctx.requests.passedOnFor(request, client);
    const response = await handle(request);
    // Its part has left in the meantime: nothing would come on it any more, and the node that has the part begins it again.
    const isAgain = isStream(request, response) || ctx.streams.isPoll(request);
    const isLate = isAgain && typeof place === "number" && !parts.has(place);
    // Or what it would have written was refused for that, and nothing else was begun.
    if (typeof place === "number" && (isLate || ctx.requests.isOfAnother(request))) {
      await response.body?.cancel();
      return await elsewhere(request, place);
    }
    // One request comes on each connection, also where it asked for an upgrade that it did not get: the client has to know that there is no second.
    response.headers.set("connection", "close");
    return response;
  };
};
