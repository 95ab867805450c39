// Shared by the protocol tests: a stopped clock, and two connected in-memory byte streams, with or without sessions on them. The connection
// can split data into chunks of any size. It can also be blocked, like a full socket.
import type { Clock, Timer } from "#base/clock.ts";
import { ByteStream } from "#src/wire/byte-stream.ts";
import { type YamuxOptions, YamuxSession } from "#src/wire/yamux.ts";

type DueTimer = { dueAt: number; run: () => void; every: number | undefined };

/** A clock that advances only by `advance`. */
export class StillClock implements Clock {
  #now = 0;
  readonly #due = new Set<DueTimer>();

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#now;
  }

  after(ms: number, run: () => void): Timer {
    return this.#add({ dueAt: this.#now + ms, run, every: undefined });
  }

  every(ms: number, run: () => void): Timer {
    return this.#add({ dueAt: this.#now + ms, run, every: ms });
  }

  /** Number of pending timers. */
  get timers(): number {
    return this.#due.size;
  }

  /** Fires due timers in order. After each, it lets pending promises and microtasks run. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    for (;;) {
      const next = [...this.#due].filter((due) => due.dueAt <= end).sort((a, b) => a.dueAt - b.dueAt)[0];
      if (!next) break;
      this.#now = next.dueAt;
      if (next.every === undefined) this.#due.delete(next);
      else next.dueAt += next.every;
      next.run();
      await nextTurn();
    }
    this.#now = end;
  }

  #add(due: DueTimer): Timer {
    this.#due.add(due);
    return { cancel: () => this.#due.delete(due) };
  }
}

/** Resolves in the next turn of the event loop, after all pending promises and microtasks. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** One end of the connection. */
class Endpoint {
  readonly stream: ByteStream;
  peer: ByteStream | undefined;
  isBlocked = false;
  queued: Uint8Array[] = [];
  /** Every message that this end has sent, for tests that compare bytes. */
  readonly sent: Uint8Array[] = [];
  closed: { code: number | undefined; reason: string | undefined } | undefined;

  constructor(split: (bytes: Uint8Array) => Uint8Array[]) {
    this.stream = new ByteStream({
      send: (bytes) => {
        const message = bytes.slice();
        this.sent.push(message);
        if (this.isBlocked) {
          this.queued.push(message);
          return -1;
        }
        this.#deliver(split(message));
        return bytes.byteLength;
      },
      close: (code, reason) => {
        this.closed = { code, reason };
        queueMicrotask(() => this.peer?.end());
      },
    });
  }

  /** Blocks this end's socket. */
  block(): void {
    this.isBlocked = true;
  }

  /** Unblocks the socket. */
  unblock(): void {
    this.isBlocked = false;
    const queued = this.queued;
    this.queued = [];
    this.#deliver(queued);
    this.stream.drain();
  }

  #deliver(pieces: Uint8Array[]): void {
    queueMicrotask(() => {
      for (const piece of pieces) this.peer?.push(piece);
    });
  }
}

export const streamPair = (
  split: (bytes: Uint8Array) => Uint8Array[] = (bytes) => [bytes],
): { a: Endpoint; b: Endpoint } => {
  const a = new Endpoint(split);
  const b = new Endpoint(split);
  a.peer = b.stream;
  b.peer = a.stream;
  return { a, b };
};

export type SessionPair = {
  client: YamuxSession;
  server: YamuxSession;
  a: Endpoint;
  b: Endpoint;
  clock: StillClock;
};

/** A client session on end `a` and a server session on end `b`. */
export const sessionPair = (
  options: Partial<YamuxOptions> = {},
  split?: (bytes: Uint8Array) => Uint8Array[],
): SessionPair => {
  const clock = new StillClock();
  const { a, b } = streamPair(split);
  const client = new YamuxSession(a.stream, { clock, ping_interval_ms: 0, ...options, role: "client" });
  const server = new YamuxSession(b.stream, { clock, ping_interval_ms: 0, ...options, role: "server" });
  return { client, server, a, b, clock };
};

/** Opens a server session; the test acts as its peer, byte by byte. */
export const openBarePeer = (
  options: Partial<YamuxOptions> = {},
): { session: YamuxSession; peer: ByteStream; end: Endpoint; clock: StillClock } => {
  const clock = new StillClock();
  const { a, b } = streamPair();
  const session = new YamuxSession(b.stream, { clock, ping_interval_ms: 0, role: "server", ...options });
  return { session, peer: a.stream, end: b, clock };
};

/** Returns all bytes until the other side ends. */
export const readAll = async (source: AsyncIterable<Uint8Array>): Promise<Uint8Array> => {
  const chunks: Uint8Array[] = [];
  for await (const chunk of source) chunks.push(chunk);
  return Buffer.concat(chunks);
};

/** Bytes that depend on seed and position, so that a mix-up is detected. */
export const makePattern = (size: number, seed = 1): Uint8Array => {
  const bytes = new Uint8Array(size);
  let state = (seed * 2654435761) >>> 0;
  for (let i = 0; i < size; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    bytes[i] = state >>> 24;
  }
  return bytes;
};

/** Splits data at the given sizes, repeatedly. */
export const splitBy =
  (sizes: readonly number[]) =>
  (bytes: Uint8Array): Uint8Array[] => {
    const pieces: Uint8Array[] = [];
    for (let position = 0, i = 0; position < bytes.byteLength; i++) {
      const size = sizes[i % sizes.length] ?? bytes.byteLength;
      pieces.push(bytes.slice(position, position + size));
      position += size;
    }
    return pieces;
  };

export const hex = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text.replaceAll(" ", ""), "hex"));
