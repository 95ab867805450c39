// The server side of calls: one stream, one call. Finds the handler by path, runs it, and sends its response or error. The handler gets an
// AbortSignal that fires when the caller has left. An unknown method returns code 12. [WI-13] [WI-14]
import type { Clock } from "#base/clock.ts";
import { AppError } from "#base/errors.ts";
import { type Duplex, readChunks } from "../duplex.ts";
import { Inbox } from "../inbox.ts";
import { WireError } from "../wire-error.ts";
import type { YamuxSession } from "../yamux.ts";
import { encodeError, KIND, MAX_PACKET, NO_BODY, RpcError, UNIMPLEMENTED } from "./frame.ts";
import { PacketBudget, PacketReader, PacketWriter } from "./packets.ts";

export interface CallContext {
  /** `/package.Service/Method` */
  method: string;
  /** Aborts when the caller cancels or its stream is reset. Handlers of streams must respect it. */
  signal: AbortSignal;
}

/** Handles a method on bytes. `service.ts` creates these from typed handlers. */
export type Handler =
  | { kind: "unary"; run(request: Uint8Array, call: CallContext): Promise<Uint8Array> }
  | { kind: "server_streaming"; run(request: Uint8Array, call: CallContext): AsyncIterable<Uint8Array> }
  | { kind: "bidi_streaming"; run(requests: AsyncIterable<Uint8Array>, call: CallContext): AsyncIterable<Uint8Array> };

/** Handlers by method path. */
export type Router = ReadonlyMap<string, Handler>;

export interface ServeOptions {
  clock: Clock;
  /** Milliseconds the caller may take to end its side after the response. Default 30 s. */
  linger_ms?: number;
  /** Maximum bytes of requests that all streams of the session hold together, unfinished or not yet handled. Default 8 MiB. */
  max_held?: number;
  /** Called with errors that callers must not see. The caller gets a generic message. */
  onError?(method: string, error: unknown): void;
}

const LINGER_MS = 30_000;
const UNKNOWN_METHOD_GRACE_MS = 1_000;
/** Twice the largest message. */
const MAX_HELD_BYTES = 2 * MAX_PACKET;
/** Maximum bytes of a method's path. */
const MAX_METHOD_BYTES = 1_024;

/** Serves every stream the peer opens until the session ends. Never rejects. */
export const serveSession = async (session: YamuxSession, router: Router, options: ServeOptions): Promise<void> => {
  const budget = new PacketBudget(options.max_held ?? MAX_HELD_BYTES);
  for (;;) {
    const stream = await session.accept();
    if (!stream) return;
    void serve(stream, router, options, budget);
  }
};

/** Serves the single call of a stream and ends the stream. Never rejects: an error ends only this stream. */
export const serve = async (
  stream: Duplex,
  router: Router,
  options: ServeOptions,
  budget = new PacketBudget(options.max_held ?? MAX_HELD_BYTES),
): Promise<void> => {
  const packets = new PacketReader(stream, budget);
  try {
    const opening = await readInvoke(packets);
    if (!opening) return await stream.end();
    await new ServedCall(stream, packets, opening.stream_id, { ...options, budget }).run(opening.method, router);
  } catch {
    // Only the stream itself can throw here, so no response can be sent.
    stream.reset();
  }
};

const readInvoke = async (packets: PacketReader): Promise<{ stream_id: number; method: string } | undefined> => {
  for (;;) {
    const packet = await packets.next();
    if (!packet) return undefined;
    if (packet.kind === KIND.invoke) {
      if (packet.body.byteLength > MAX_METHOD_BYTES)
        throw new WireError("protocol", "A method with a path that is too long.");
      return { stream_id: packet.stream_id, method: new TextDecoder().decode(packet.body) };
    }
    if (packet.kind !== KIND.metadata) throw new WireError("protocol", "A call must start with its method.");
  }
};

class ServedCall {
  readonly #stream: Duplex;
  readonly #packets: PacketReader;
  readonly #out: PacketWriter;
  readonly #options: ServeOptions & { budget: PacketBudget };
  readonly #inbox: Inbox;
  readonly #abort = new AbortController();
  #hasAnswered = false;

  constructor(
    stream: Duplex,
    packets: PacketReader,
    streamId: number,
    options: ServeOptions & { budget: PacketBudget },
  ) {
    this.#stream = stream;
    this.#packets = packets;
    this.#out = new PacketWriter(stream, streamId);
    this.#options = options;
    this.#inbox = new Inbox(options.budget);
  }

  async run(method: string, router: Router): Promise<void> {
    void this.#stream.closed.then((failure) => {
      if (failure) this.#cancel(failure);
    });
    const reading = this.#readRequests();
    await this.#answer(method, router);
    this.#hasAnswered = true;
    // From now on, packets are read only to detect the end of the caller's side. This side ends after it (facts/wire 1.4: the client
    // closes).
    this.#inbox.discard();
    const timer = this.#options.clock.after(this.#options.linger_ms ?? LINGER_MS, () =>
      this.#stream.reset("The caller never ended the call."),
    );
    await reading;
    timer.cancel();
    await this.#stream.end();
  }

  /** Sends the response or the error. Throws only if the stream is broken. */
  async #answer(method: string, router: Router): Promise<void> {
    const { signal } = this.#abort;
    try {
      const handler = router.get(method);
      if (!handler) {
        await this.#waitForRequest();
        throw new RpcError(UNIMPLEMENTED, `unknown rpc: ${method}`);
      }
      const call: CallContext = { method, signal };
      if (handler.kind === "unary") {
        const reply = await handler.run(await this.#readOnlyRequest(), call);
        if (!signal.aborted) await this.#out.send([KIND.message, reply], [KIND.close_send, NO_BODY]);
        return;
      }
      const replies =
        handler.kind === "bidi_streaming"
          ? handler.run(readChunks({ read: () => this.#inbox.take() }), call)
          : handler.run(await this.#readOnlyRequest(), call);
      for await (const reply of replies) {
        if (signal.aborted) return;
        await this.#out.send([KIND.message, reply]);
      }
      if (!signal.aborted) await this.#out.send([KIND.close_send, NO_BODY]);
    } catch (error) {
      const { code, text, isHidden } = describeError(error);
      if (isHidden && !signal.aborted) this.#options.onError?.(method, error);
      await this.#out.send([KIND.error, encodeError(code, text)]).catch(() => {});
    }
  }

  async #readOnlyRequest(): Promise<Uint8Array> {
    const request = await this.#inbox.take();
    if (!request) throw new RpcError(0, "The call has no request.");
    return request;
  }

  // Reads the request before the error is sent: a Go caller that is still sending its request when the error arrives reports a plain EOF
  // instead of the error. A caller that sends no request gets the error after a grace period.
  async #waitForRequest(): Promise<void> {
    const grace = Promise.withResolvers<void>();
    const timer = this.#options.clock.after(UNKNOWN_METHOD_GRACE_MS, grace.resolve);
    await Promise.race([this.#inbox.take().catch(() => {}), grace.promise]);
    timer.cancel();
  }

  /** Reads the caller's packets after the method, until it ends its side. Never rejects. */
  async #readRequests(): Promise<void> {
    try {
      let packet = await this.#packets.next();
      for (; packet; packet = await this.#packets.next()) {
        if (packet.kind === KIND.message) await this.#inbox.put(packet.body);
        else if (packet.kind === KIND.close_send) this.#inbox.close();
        // Cancel, Close, Error: the caller no longer wants a response. The caller's side must still end first: a Go caller that sees the
        // end of this side while it sends its Close treats the call as canceled.
        else if (packet.kind !== KIND.metadata) this.#cancel(toCallerLeftError());
      }
      this.#cancel(toCallerLeftError());
      // The caller will not grant more window, so a response that waits for window is dropped.
      if (!this.#hasAnswered) this.#stream.reset("The caller has ended the call.");
    } catch (error) {
      this.#cancel(error instanceof WireError ? error : new WireError("closed", "The stream failed.", error));
      // Reads and drops further data of a refused request, which would stay in memory otherwise.
      void this.#packets.skipRest();
    }
  }

  #cancel(reason: WireError): void {
    this.#inbox.fail(reason);
    this.#abort.abort(reason);
  }
}

const toCallerLeftError = (): WireError => new WireError("closed", "The caller has ended the call.");

/** Returns the code and text of an error for the caller. Messages that are not meant for callers are replaced, and `isHidden` is true. */
const describeError = (error: unknown): { code: number; text: string; isHidden: boolean } => {
  if (error instanceof RpcError) return { code: error.code, text: error.message, isHidden: false };
  if (error instanceof AppError && error.kind !== "internal") {
    return { code: 0, text: error.detail ? `${error.message} ${error.detail}` : error.message, isHidden: false };
  }
  if (error instanceof WireError) return { code: 0, text: error.message, isHidden: false };
  return { code: 0, text: "internal error", isHidden: true };
};
