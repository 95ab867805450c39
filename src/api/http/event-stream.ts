// Server-sent events (text/event-stream) as strict readers want them: an `event:` line, at most one `data:` line, an empty line, and
// nothing else. Bounded: a reader that does not read is ended, not buffered for (rules EV-1 to EV-3).
import { log } from "#base/log.ts";
import type { ApiContext } from "../context.ts";
import { getCaller } from "./caller.ts";

/** Bytes that may wait for a reader before its stream is ended. */
const SLOW_BYTES = 512 * 1024;
const PING = "event: ping\n\n";

const HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache",
  connection: "keep-alive",
  "x-accel-buffering": "no",
};

/** One open stream. */
export class EventStream {
  readonly #controller: ReadableStreamDefaultController<Uint8Array>;
  readonly #closed: () => void;
  #open = true;
  #wake: (() => void) | undefined;

  constructor(controller: ReadableStreamDefaultController<Uint8Array>, closed: () => void) {
    this.#controller = controller;
    this.#closed = closed;
  }

  /** Sends one event; `json` is one line of JSON. False when the stream has ended, or was ended now because its reader is stuck. */
  send(event: "data" | "error" | "end", json: string): boolean {
    return this.#write(`event: ${event}\ndata: ${json}\n\n`);
  }

  ping(): boolean {
    return this.#write(PING);
  }

  /** Bytes that the reader has not taken yet: the strategy counts them. */
  get waiting(): number {
    return -(this.#controller.desiredSize ?? 0);
  }

  /** Resolves when at most so many bytes wait for the reader; false when the stream has ended. */
  async room(bytes: number): Promise<boolean> {
    while (this.#open && this.waiting > bytes) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return this.#open;
  }

  /** The reader has taken what there was. */
  pulled(): void {
    this.#wake?.();
  }

  /** Ends it immediately: the reader is too slow. */
  cut(): void {
    if (!this.#open) return;
    this.left();
    log("http").debug("the reader of an event stream is too slow: the stream is ended");
    // Bun prints any error that is given here, with its stack; without one it only cuts the connection.
    this.#controller.error();
  }

  /** Ends the stream after what is waiting. */
  end(): void {
    if (!this.#open) return;
    this.left();
    this.#controller.close();
  }

  /** The reader has disconnected. */
  left(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#wake?.();
    this.#closed();
  }

  #write(text: string): boolean {
    if (!this.#open) return false;
    if (this.waiting > SLOW_BYTES) {
      this.cut();
      return false;
    }
    this.#controller.enqueue(new TextEncoder().encode(text));
    return true;
  }
}

/**
 * Answers with an event stream: a ping at once and each 15 s, and what `opened` sends. `opened` returns what to do when the stream
 * has ended, by whichever side. The stream has no deadline and ends with the server. Throws 503 when too many are open.
 */
export const eventStream = (
  ctx: ApiContext,
  request: Request,
  opened: (stream: EventStream) => () => void,
): Response => {
  let stream: EventStream | undefined;
  const caller = getCaller(request);
  const open = { end: () => stream?.end(), ping: () => void stream?.ping() };
  const forget = ctx.streams.add(open, caller.kind === "user" ? caller.user_id : caller.agent_id, request);
  ctx.requests.exempt(request);
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const undo = [forget];
        const made = new EventStream(controller, () => {
          for (const one of undo) one();
        });
        stream = made;
        made.ping();
        try {
          undo.push(opened(made));
        } catch (error) {
          made.left();
          throw error;
        }
        // To say how long the answer would be, Elysia reads it to its end.
        if (request.method === "HEAD") made.end();
      },
      pull() {
        stream?.pulled();
      },
      cancel() {
        stream?.left();
      },
    },
    new ByteLengthQueuingStrategy({ highWaterMark: 0 }),
  );
  return new Response(body, { headers: HEADERS });
};
