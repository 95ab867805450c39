// The daemon's HTTP API for the desktop (facts/wire 4.1): the VNC stream over a WebSocket, and a model's actions. Used by http.ts.
import type { Server } from "bun";
import type { Clock } from "#base/clock.ts";
import type { DesktopAction, DesktopPicture } from "#schema/agents/desktop-action.ts";
import { type Duplex, Wakeup } from "#src/wire/index.ts";
import type { SocketData, SocketHandler } from "../http/sockets.ts";
import { OnceByName } from "../once.ts";
import { performAction } from "./actions.ts";
import type { Desktop } from "./desktop.ts";

/** Bytes buffered for a slow reader before the VNC server is no longer read. */
const MAX_READ_AHEAD_BYTES = 1024 * 1024;
/** Maximum number of bytes buffered for the VNC server; a client that sends more is disconnected. */
const MAX_BUFFERED_BYTES = 4 * 1024 * 1024;

export type DesktopHttp = {
  readonly desktop: Desktop;
  readonly clock: Clock;
  /** Reads and validates the body of a request for an action. */
  readonly readAction: (request: Request) => Promise<DesktopAction>;
};

export const createDesktopRoutes = ({ desktop, clock, readAction }: DesktopHttp) => {
  const actions = new OnceByName<DesktopPicture>();
  return {
    "/api/v0/desktop/vnc": {
      GET: async (request: Request, server: Server<SocketData>) => {
        const stream = await desktop.connect();
        if (server.upgrade(request, { data: { handler: createBridge(stream) } })) return undefined;
        stream.reset();
        return Response.json({ message: "This route takes WebSockets." }, { status: 426 });
      },
    },
    "/api/v0/desktop/action": {
      POST: async (request: Request) => {
        const { id, ...action } = await readAction(request);
        const perform = () => performAction(desktop, clock, action);
        return Response.json(await (id === undefined ? perform() : actions.run(id, perform)));
      },
    },
  };
};

const createBridge = (stream: Duplex): SocketHandler => {
  const drained = new Wakeup();
  let pendingBytes = 0;
  let isClosed = false;
  return {
    open(socket) {
      const read = async (): Promise<void> => {
        for (;;) {
          const chunk = await stream.read();
          if (chunk === undefined) return;
          socket.sendBinary(chunk);
          while (!isClosed && socket.getBufferedAmount() > MAX_READ_AHEAD_BYTES) await drained.wait();
        }
      };
      read().then(
        () => socket.close(1000, "the desktop has ended"),
        () => socket.close(1011, "the desktop has ended"),
      );
    },
    message(socket, data) {
      const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data.slice();
      pendingBytes += bytes.byteLength;
      if (pendingBytes > MAX_BUFFERED_BYTES) {
        socket.close(1008, "more than the desktop reads");
        return;
      }
      stream.write(bytes).then(
        () => {
          pendingBytes -= bytes.byteLength;
        },
        () => {},
      );
    },
    drain: () => drained.wake(),
    close() {
      isClosed = true;
      drained.wake();
      stream.reset("The viewer has gone.");
    },
  };
};
