// WebSockets of the daemon's HTTP API: one set of callbacks that dispatches to the handler of each route. Limits incoming and buffered
// data. Used by http.ts.
import type { ServerWebSocket } from "bun";

export interface SocketHandler {
  open?(socket: ServerWebSocket<SocketData>): void;
  message?(socket: ServerWebSocket<SocketData>, data: string | Uint8Array): void;
  /** Called when buffered data has been sent. */
  drain?(socket: ServerWebSocket<SocketData>): void;
  close?(socket: ServerWebSocket<SocketData>): void;
}

export type SocketData = { readonly handler: SocketHandler };

/** Maximum size of an incoming message; the longest is text pasted into a desktop. */
const MAX_MESSAGE_BYTES = 1024 * 1024;
const MAX_BUFFERED_BYTES = 16 * 1024 * 1024;

export const handledSockets = {
  idleTimeout: 60,
  sendPings: true,
  maxPayloadLength: MAX_MESSAGE_BYTES,
  backpressureLimit: MAX_BUFFERED_BYTES,
  closeOnBackpressureLimit: true,
  open: (socket: ServerWebSocket<SocketData>) => socket.data.handler.open?.(socket),
  message: (socket: ServerWebSocket<SocketData>, data: string | Uint8Array) =>
    socket.data.handler.message?.(socket, data),
  drain: (socket: ServerWebSocket<SocketData>) => socket.data.handler.drain?.(socket),
  close: (socket: ServerWebSocket<SocketData>) => socket.data.handler.close?.(socket),
};
