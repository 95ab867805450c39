// A user's client in the private network: the Tailnet service over yamux over a WebSocket (facts/wire 2.1).
import { log } from "#base/log.ts";
import { ByteStream, createRouter, serveSession, Tailnet, toCloseError, YamuxSession } from "#src/wire/index.ts";
import type { ApiContext } from "../context.ts";
import { CLOSE, type Socket, type SocketHandler } from "../http/socket.ts";
import { type TailnetCaller, tailnetService } from "./service.ts";

/** A client uses one stream for each of the five methods, and makes few calls at a time. */
const MAX_STREAMS = 32;
/** Limit for unread bytes of a client; its requests are a few kilobytes. */
const MAX_HELD_BYTES = 1024 * 1024;

export class ClientConnection implements SocketHandler {
  readonly #ctx: ApiContext;
  readonly #caller: TailnetCaller;
  readonly #onEnd: () => void;
  #stream: ByteStream | undefined;
  #session: YamuxSession | undefined;

  /** `onEnd` is called once, when the socket has disconnected. */
  constructor(ctx: ApiContext, caller: TailnetCaller, onEnd: () => void = () => {}) {
    this.#ctx = ctx;
    this.#caller = caller;
    this.#onEnd = onEnd;
  }

  open(socket: Socket): void {
    const { clock } = this.#ctx;
    const stream = new ByteStream({
      send: (bytes) => socket.transmit(bytes),
      close: (code = CLOSE.normal, reason = "") => socket.close(code, reason),
    });
    const session = new YamuxSession(stream, { role: "server", clock, max_streams: MAX_STREAMS });
    this.#stream = stream;
    this.#session = session;
    const peer = { ...this.#caller.peer, dropped: (reason: string) => stream.close(CLOSE.tryLater, reason) };
    const router = createRouter(Tailnet, tailnetService(this.#ctx, { ...this.#caller, peer }));
    const onError = (method: string, error: unknown): void =>
      log("tailnet").error("{method} failed: {error}", { method, error });
    void serveSession(session, router, { clock, onError, max_held: MAX_HELD_BYTES });
  }

  message(_socket: Socket, data: string | Uint8Array): void {
    this.#stream?.push(data);
  }

  drain(): void {
    this.#stream?.drain();
  }

  close(_socket: Socket, code: number, reason: string): void {
    this.#stream?.end(toCloseError(code, reason));
    this.#session?.close();
    this.#onEnd();
  }
}
