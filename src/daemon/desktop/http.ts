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
  /** Returns the validated body of an action. */
  readonly actionOf: (request: Request) => Promise<DesktopAction>;
};

export const createDesktopRoutes = ({ desktop, clock, actionOf }: DesktopHttp) => {
  const done = new OnceByName<DesktopPicture>();
  return {
    "/api/v0/desktop/vnc": {
      GET: async (request: Request, server: Server<SocketData>) => {
        const stream = await desktop.connect();
        if (server.upgrade(request, { data: { handler: makeBridge(stream) } })) return undefined;
        stream.reset();
        return Response.json({ message: "This route takes WebSockets." }, { status: 426 });
      },
    },
    "/api/v0/desktop/action": {
      POST: async (request: Request) => {
        const { id, ...action } = await actionOf(request);
        const act = () => performAction(desktop, clock, action);
        return Response.json(await (id === undefined ? act() : done.run(id, act)));
      },
    },
  };
};

const makeBridge = (stream: Duplex): SocketHandler => {
  const drained = new Wakeup();
  let waiting = 0;
  let isOver = false;
  return {
    open(socket) {
      const read = async (): Promise<void> => {
        for (;;) {
          const chunk = await stream.read();
          if (chunk === undefined) return;
          socket.sendBinary(chunk);
          while (!isOver && socket.getBufferedAmount() > MAX_READ_AHEAD_BYTES) await drained.wait();
        }
      };
      read().then(
        () => socket.close(1000, "the desktop has ended"),
        () => socket.close(1011, "the desktop has ended"),
      );
    },
    message(socket, data) {
      const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data.slice();
      waiting += bytes.byteLength;
      if (waiting > MAX_BUFFERED_BYTES) {
        socket.close(1008, "more than the desktop reads");
        return;
      }
      stream.write(bytes).then(
        () => {
          waiting -= bytes.byteLength;
        },
        () => {},
      );
    },
    drain: () => drained.wake(),
    close() {
      isOver = true;
      drained.wake();
      stream.reset("The viewer has gone.");
    },
  };
};
