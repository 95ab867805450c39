// Server-sent events (text/event-stream) for strict parsers: an `event:` line, at most one `data:` line, an empty line, and nothing else.
// Buffers are bounded: the stream of a client that does not read is ended (rules EV-1 to EV-5).
import type { Clock, Timer } from "#base/clock.ts";
import { log } from "#base/log.ts";
import type { ApiContext } from "../context.ts";
import type { Backlog } from "./backlog.ts";
import { getCaller } from "./caller.ts";
import { toHolder } from "./holders.ts";
import { CLOSE_TIMEOUT_MS } from "./socket.ts";

/** Maximum bytes waiting for a client before its stream is ended. */
const MAX_WAITING_BYTES = 512 * 1024;
const PING_BYTES = new TextEncoder().encode("event: ping\n\n");

const HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache",
  connection: "keep-alive",
  "x-accel-buffering": "no",
};

export type EventStreamOptions = {
  readonly clock: Clock;
  readonly backlog: Backlog;
  readonly holder: string | undefined;
  /** Called once when nothing more is sent, because either side has ended the stream. */
  readonly onEnded: () => void;
  /** Called once after that, when nothing waits for the client any longer. */
  readonly onClosed: () => void;
  /** Must cut the connection although its client does not read. */
  readonly cut: () => void;
};

/** One stream: `open`, then `ending` while its client reads what waits, then `closed`. */
export class EventStream {
  readonly #controller: ReadableStreamDefaultController<Uint8Array>;
  readonly #options: EventStreamOptions;
  #state: "open" | "ending" | "closed" = "open";
  /**
   * Size of the largest event since the runtime last asked for more. The runtime takes one event out of the queue and holds it until the
   * network has room.
   */
  #heldBytes = 0;
  #wake: (() => void) | undefined;
  #closeTimer: Timer | undefined;

  constructor(controller: ReadableStreamDefaultController<Uint8Array>, options: EventStreamOptions) {
    this.#controller = controller;
    this.#options = options;
  }

  get holder(): string | undefined {
    return this.#options.holder;
  }

  /**
   * Sends one event; `json` is one line of JSON. Returns false when the stream has ended, or was just ended because its client is stalled.
   */
  send(event: "data" | "error" | "end", json: string): boolean {
    return this.#write(encodeEvent(event, json));
  }

  ping(): boolean {
    return this.#write(PING_BYTES);
  }

  /** Returns the number of bytes that the client has not read yet. */
  get waiting(): number {
    return this.#state === "closed" ? 0 : this.#queuedBytes + this.#heldBytes;
  }

  get #isOpen(): boolean {
    return this.#state === "open";
  }

  /** As counted by the queuing strategy. */
  get #queuedBytes(): number {
    return -(this.#controller.desiredSize ?? 0);
  }

  /** Resolves with true when at most this many bytes wait for the client, and with false when the stream has ended. */
  async waitForRoom(bytes: number): Promise<boolean> {
    while (this.#isOpen && this.waiting > bytes) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return this.#isOpen;
  }

  /** Called when the client has read what was waiting. */
  onPull(): void {
    this.#heldBytes = 0;
    this.#options.backlog.note(this);
    if (this.#state === "ending") this.#close();
    this.#wake?.();
  }

  /** Ends the stream immediately because the client is too slow. */
  terminate(): void {
    if (this.#state === "closed") return;
    this.onDisconnect();
    log("http").debug("the reader of an event stream is too slow: the stream is ended");
    // Bun prints any error passed here, with its stack; without one it only cuts the connection, once the client has read the held event.
    this.#controller.error();
    this.#options.cut();
  }

  /** Ends the stream after the waiting events have been sent. A client that does not read them is cut off after two minutes. */
  end(): void {
    if (!this.#isOpen) return;
    this.#stopSending();
    if (this.waiting === 0) this.#close();
    else this.#closeTimer = this.#options.clock.after(CLOSE_TIMEOUT_MS, () => this.terminate());
  }

  /** Called when the client has disconnected. */
  onDisconnect(): void {
    if (this.#state === "closed") return;
    this.#stopSending();
    this.#state = "closed";
    this.#closeTimer?.cancel();
    this.#options.backlog.forget(this);
    this.#options.onClosed();
  }

  #close(): void {
    this.onDisconnect();
    this.#controller.close();
  }

  #stopSending(): void {
    if (!this.#isOpen) return;
    this.#state = "ending";
    this.#wake?.();
    this.#options.onEnded();
  }

  #write(bytes: Uint8Array): boolean {
    if (!this.#isOpen) return false;
    if (this.#queuedBytes > MAX_WAITING_BYTES) {
      this.terminate();
      return false;
    }
    this.#heldBytes = Math.max(this.#heldBytes, bytes.length);
    this.#controller.enqueue(bytes);
    this.#options.backlog.note(this);
    return this.#isOpen;
  }
}

let lastEvent = { json: "", event: "", bytes: new Uint8Array() };

/** Returns the bytes of an event. Thousands of streams that get the same event one after the other share them. */
const encodeEvent = (event: string, json: string): Uint8Array => {
  if (lastEvent.json !== json || lastEvent.event !== event)
    lastEvent = { json, event, bytes: new TextEncoder().encode(`event: ${event}\ndata: ${json}\n\n`) };
  return lastEvent.bytes;
};

/**
 * Responds with an event stream: a ping immediately and every 15 s, and whatever `onOpened` sends. `onOpened` returns a cleanup function that
 * is called when either side ends the stream. The stream has no deadline and ends with the server. Throws 503 when too many are open.
 */
export const eventStream = (
  ctx: ApiContext,
  request: Request,
  onOpened: (stream: EventStream) => () => void,
): Response => {
  let stream: EventStream | undefined;
  const caller = getCaller(request);
  const handle = { end: () => stream?.end(), ping: () => void stream?.ping() };
  const holder = toHolder(caller);
  const unregister = ctx.streams.add(handle, holder, request);
  ctx.requests.exempt(request);
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        let cleanUp = (): void => {};
        const newStream = new EventStream(controller, {
          clock: ctx.clock,
          backlog: ctx.sockets.backlog,
          holder: holder.owner ?? holder.who,
          onEnded: () => cleanUp(),
          onClosed: unregister,
          cut: () => ctx.requests.cut(request),
        });
        stream = newStream;
        newStream.ping();
        try {
          cleanUp = onOpened(newStream);
        } catch (error) {
          newStream.onDisconnect();
          throw error;
        }
        // For HEAD, Elysia reads the response to its end to determine its length.
        if (request.method === "HEAD") newStream.end();
      },
      pull() {
        stream?.onPull();
      },
      cancel() {
        stream?.onDisconnect();
      },
    },
    new ByteLengthQueuingStrategy({ highWaterMark: 0 }),
  );
  return new Response(body, { headers: HEADERS });
};
