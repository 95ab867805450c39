// WebSockets of the daemon's HTTP API: one set of callbacks for all routes, which hands everything to the handler that the route has put
// there. Used by http.ts; bounds what may come in and what may wait.
import type { ServerWebSocket } from "bun";

export interface SocketHandler {
  open?(socket: ServerWebSocket<SocketData>): void;
  message?(socket: ServerWebSocket<SocketData>, data: string | Uint8Array): void;
  /** What waited has gone. */
  drain?(socket: ServerWebSocket<SocketData>): void;
  close?(socket: ServerWebSocket<SocketData>): void;
}

export type SocketData = { readonly handler: SocketHandler };

/** Bytes of a message that comes in: what is pasted into a desktop is the longest. */
const MAX_IN_BYTES = 1024 * 1024;
const MAX_OUT_BYTES = 16 * 1024 * 1024;

export const handledSockets = {
  idleTimeout: 60,
  sendPings: true,
  maxPayloadLength: MAX_IN_BYTES,
  backpressureLimit: MAX_OUT_BYTES,
  closeOnBackpressureLimit: true,
  open: (socket: ServerWebSocket<SocketData>) => socket.data.handler.open?.(socket),
  message: (socket: ServerWebSocket<SocketData>, data: string | Uint8Array) =>
    socket.data.handler.message?.(socket, data),
  drain: (socket: ServerWebSocket<SocketData>) => socket.data.handler.drain?.(socket),
  close: (socket: ServerWebSocket<SocketData>) => socket.data.handler.close?.(socket),
};
