// The daemon's HTTP API for containers (facts/wire 4.1): the listing, a WebSocket that follows it, and operations on devcontainers. Used by
// http.ts.
import type { Server } from "bun";
import { invalidField } from "#base/errors.ts";
import type { SocketData, SocketHandler } from "../http/sockets.ts";
import type { Containers } from "./containers.ts";

type RoutedRequest = Request & { params: Record<string, string> };

export const createContainerRoutes = (containers: Containers) => ({
  "/api/v0/containers": { GET: async (request: Request) => Response.json(await containers.list(parseLabels(request))) },
  "/api/v0/containers/watch": {
    GET: (request: Request, server: Server<SocketData>) =>
      server.upgrade(request, { data: { handler: createWatchHandler(containers) } })
        ? undefined
        : Response.json({ message: "This route takes WebSockets." }, { status: 426 }),
  },
  "/api/v0/containers/devcontainers/:id": {
    DELETE: async (request: RoutedRequest) => {
      await containers.delete(request.params.id ?? "");
      return new Response(null, { status: 204 });
    },
  },
  "/api/v0/containers/devcontainers/:id/recreate": {
    POST: async (request: RoutedRequest) => {
      await containers.recreate(request.params.id ?? "");
      return Response.json({ message: "The devcontainer is being recreated." }, { status: 202 });
    },
  },
});

/** Maximum number of bytes buffered for a slow reader. With more, the reader is disconnected and can reconnect. */
const MAX_BUFFERED_BYTES = 8 * 1024 * 1024;

const createWatchHandler = (containers: Containers): SocketHandler => {
  let stop: (() => void) | undefined;
  return {
    open(socket) {
      stop = containers.watch((listing) => {
        if (socket.getBufferedAmount() > MAX_BUFFERED_BYTES) socket.terminate();
        else socket.send(listing);
      });
    },
    message: (socket) => socket.close(1008, "this stream takes no messages"),
    close: () => stop?.(),
  };
};

/** Parses `label=key=value`, which may be repeated. */
const parseLabels = (request: Request): (readonly [string, string])[] =>
  new URL(request.url).searchParams.getAll("label").map((text) => {
    const separator = text.indexOf("=");
    if (separator < 1) throw invalidField("label", "must be key=value");
    return [text.slice(0, separator), text.slice(separator + 1)];
  });
