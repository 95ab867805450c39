// What both connections of a daemon share: received bytes go to their yamux session, and pending bytes are sent when the socket drains.
import type { Socket, SocketHandler } from "../http/socket.ts";
import type { YamuxSocket } from "./yamux-socket.ts";

export abstract class YamuxConnection implements SocketHandler {
  /** Set once the socket is open. */
  protected yamux: YamuxSocket | undefined;

  abstract open(socket: Socket): void;
  abstract close(socket: Socket, code: number, reason: string): void;

  message(_socket: Socket, data: string | Uint8Array): void {
    this.yamux?.push(data);
  }

  drain(): void {
    this.yamux?.drain();
  }
}
