// Server-sent events (text/event-stream) for strict parsers: an `event:` line, at most one `data:` line, an empty line, and nothing else.
// Buffers are bounded: the stream of a client that does not read is ended (rules EV-1 to EV-3).
import { log } from "#base/log.ts";
import type { ApiContext } from "../context.ts";
import type { Backlog } from "./backlog.ts";
import { getCaller } from "./caller.ts";
import { toHolder } from "./holders.ts";

/** Maximum bytes waiting for a client before its stream is ended. */
const MAX_WAITING_BYTES = 512 * 1024;
const PING_BYTES = new TextEncoder().encode("event: ping\n\n");

const HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache",
  connection: "keep-alive",
  "x-accel-buffering": "no",
};

/** One open stream. */
export class EventStream {
  readonly #controller: ReadableStreamDefaultController<Uint8Array>;
  readonly #onClosed: () => void;
  readonly #backlog: Backlog;
  readonly holder: string | undefined;
  #isOpen = true;
  /**
   * Size of the largest event since the runtime last asked for more. The runtime takes one event out of the queue and holds it until the
   * network has room.
   */
  #heldBytes = 0;
  #wake: (() => void) | undefined;

  constructor(
    controller: ReadableStreamDefaultController<Uint8Array>,
    { onClosed, backlog, holder }: { onClosed: () => void; backlog: Backlog; holder: string | undefined },
  ) {
    this.#controller = controller;
    this.#onClosed = onClosed;
    this.#backlog = backlog;
    this.holder = holder;
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
    return this.#isOpen ? this.#queuedBytes + this.#heldBytes : 0;
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
    this.#backlog.note(this);
    this.#wake?.();
  }

  /** Ends the stream immediately because the client is too slow. */
  terminate(): void {
    if (!this.#isOpen) return;
    this.onDisconnect();
    log("http").debug("the reader of an event stream is too slow: the stream is ended");
    // Bun prints any error passed here, with its stack; without one it only cuts the connection.
    this.#controller.error();
  }

  /** Ends the stream after the waiting events have been sent. */
  end(): void {
    if (!this.#isOpen) return;
    this.onDisconnect();
    this.#controller.close();
  }

  /** Called when the client has disconnected. */
  onDisconnect(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#backlog.forget(this);
    this.#wake?.();
    this.#onClosed();
  }

  #write(bytes: Uint8Array): boolean {
    if (!this.#isOpen) return false;
    if (this.#queuedBytes > MAX_WAITING_BYTES) {
      this.terminate();
      return false;
    }
    this.#heldBytes = Math.max(this.#heldBytes, bytes.length);
    this.#controller.enqueue(bytes);
    this.#backlog.note(this);
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
        const cleanups = [unregister];
        const onClosed = (): void => {
          for (const cleanUp of cleanups) cleanUp();
        };
        const newStream = new EventStream(controller, {
          onClosed,
          backlog: ctx.sockets.backlog,
          holder: holder.owner ?? holder.who,
        });
        stream = newStream;
        newStream.ping();
        try {
          cleanups.push(onOpened(newStream));
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
