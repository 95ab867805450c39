// All TCP connections with one peer: dispatches segments, offers new connections, and refuses others. Limits the number of connections, of
// unopened connections, and of unread bytes. [TL-23] [TL-26]
import type { Clock } from "#base/clock.ts";
import type { Random } from "#base/random.ts";
import { WireError } from "#src/wire/index.ts";
import { addressKey, type Ends, type Packet } from "../packets/ip6.ts";
import { type Connected, encodeSegment, FLAG, parseSegment, type Segment } from "../packets/segment.ts";
import { type Host, TcpConnection } from "./connection.ts";
import { LARGE_SEGMENT, plus } from "./sequence.ts";

export const MAX_CONNECTIONS = 1_024;
/** Maximum number of connections offered to us and not yet established. */
export const MAX_OPENING = 128;
/** Maximum number of unread bytes of one peer, including overhead. */
export const MAX_HELD = 32 * 1024 * 1024;
/** An offered connection that is not accepted within this time is refused. */
const OPENING_MS = 30_000;
/** How long an ended connection is remembered, for lost acknowledgments. */
const LINGER_MS = 5_000;
const FIRST_PORT = 49_152;
const LAST_PORT = 65_000;

/** Called for a connection to `port`: calls `accept` or `reset` on it, now or later. */
export type Accept = (connection: TcpConnection, port: number) => void;

export type StackOptions = {
  clock: Clock;
  random: Random;
  carry(packet: Uint8Array): void;
  endOfTurn(run: () => void): void;
  accept: Accept;
  /** If false, segments are no larger than those of other implementations. */
  hasLargeSegments?: boolean;
};

type Entry = { readonly connection: TcpConnection; isOver: boolean };
/** The connection of the last packet, which usually also receives the next. */
type Latest = { readonly ends: Packet; readonly ours: number; readonly theirs: number; readonly entry: Entry };

export class TcpStack {
  readonly #o: StackOptions;
  readonly #host: Host;
  readonly #typing: Typing<TcpConnection>;
  readonly #entries = new Map<number, Map<string, Entry>>();
  #open = 0;
  #held = 0;
  #port: number;
  #latest: Latest | undefined;

  constructor(options: StackOptions) {
    this.#o = options;
    this.#port = FIRST_PORT + Math.floor(options.random() * 8_192);
    this.#typing = new Typing(options.clock);
    this.#host = {
      clock: options.clock,
      carry: options.carry,
      endOfTurn: options.endOfTurn,
      room: () => MAX_HELD - this.#held,
      largeSegment: options.hasLargeSegments === false ? undefined : LARGE_SEGMENT,
      written: (by, isLittle) => this.#typing.written(by, isLittle),
      isTypedBeside: (one) => this.#typing.isBeside(one),
      holds: (change) => {
        this.#held += change;
      },
    };
  }

  /** Returns the number of open connections, and the bytes buffered for them. */
  get figures(): { connections: number; held: number } {
    return { connections: this.#open, held: this.#held };
  }

  /** Takes a TCP packet from the peer. */
  push(packet: Packet): void {
    const segment = parseSegment(packet.payload);
    if (!segment) return;
    const { sourcePort: theirs, targetPort: ours } = segment;
    const known = this.#find(packet, ours, theirs);
    if (known && !(known.isOver && segment.flags === FLAG.syn)) known.connection.push(segment);
    else if (segment.flags & FLAG.rst) return;
    else
      this.#begin(segment, {
        source: packet.target.slice(),
        target: packet.source.slice(),
        sourcePort: ours,
        targetPort: theirs,
      });
  }

  /** Connects to this port of the peer. Throws WireError: `refused`, `closed`, `reset` when the signal fires. */
  async connect(ends: Ends, port: number, signal?: AbortSignal): Promise<TcpConnection> {
    if (this.#open >= MAX_CONNECTIONS) throw new WireError("too_large", "There are too many connections to this peer.");
    const connection = this.#add({
      ...ends,
      sourcePort: this.#freePort(toConnectionKey(port, ends.source, ends.target)),
      targetPort: port,
    });
    const late = this.#o.clock.after(OPENING_MS, () => connection.abandon("The peer does not answer."));
    const giveUp = (): void => connection.reset("It was given up.");
    signal?.addEventListener("abort", giveUp, { once: true });
    try {
      const opened = connection.dial();
      if (signal?.aborted) giveUp();
      await opened;
      return connection;
    } finally {
      late.cancel();
      signal?.removeEventListener("abort", giveUp);
    }
  }

  /** The link to the peer is back; data sent while it was down is lost. */
  resume(): void {
    for (const ofPort of this.#entries.values()) for (const { connection } of ofPort.values()) connection.resume();
  }

  /** The peer no longer exists: all connections break immediately. */
  close(reason: string): void {
    for (const ofPort of [...this.#entries.values()])
      for (const { connection } of [...ofPort.values()]) connection.abandon(reason);
  }

  #begin(segment: Segment, ends: Connected): void {
    const isNew = (segment.flags & (FLAG.syn | FLAG.ack)) === FLAG.syn;
    if (!isNew || this.#open >= MAX_CONNECTIONS) {
      this.#refuse(segment, ends);
      return;
    }
    // Dropped: a real peer retries within a second.
    if (this.#opening() >= MAX_OPENING) return;
    const connection = this.#add(ends);
    connection.offer(segment);
    this.#o.clock.after(OPENING_MS, () => {
      if (connection.isOpening) connection.reset("It was not opened in time.");
    });
    this.#o.accept(connection, ends.sourcePort);
  }

  #add(ends: Connected): TcpConnection {
    const key = toConnectionKey(ends.targetPort, ends.source, ends.target);
    const entry: Entry = {
      connection: new TcpConnection(ends, this.#host, (failure) => this.#end(ends, key, entry, failure)),
      isOver: false,
    };
    let ofPort = this.#entries.get(ends.sourcePort);
    if (!ofPort) {
      ofPort = new Map();
      this.#entries.set(ends.sourcePort, ofPort);
    }
    ofPort.set(key, entry);
    this.#latest = undefined;
    this.#open += 1;
    return entry.connection;
  }

  #end(ends: Connected, key: string, entry: Entry, failure: WireError | undefined): void {
    entry.isOver = true;
    this.#open -= 1;
    this.#typing.forget(entry.connection);
    const forget = (): void => {
      const ofPort = this.#entries.get(ends.sourcePort);
      if (ofPort?.get(key) !== entry) return;
      ofPort.delete(key);
      if (this.#latest?.entry === entry) this.#latest = undefined;
      if (ofPort.size === 0) this.#entries.delete(ends.sourcePort);
    };
    if (failure) forget();
    else this.#o.clock.after(LINGER_MS, forget);
  }

  #find(packet: Packet, ours: number, theirs: number): Entry | undefined {
    const latest = this.#latest;
    if (latest?.ours === ours && latest.theirs === theirs && packet.hasSameEnds(latest.ends)) return latest.entry;
    const entry = this.#of(ours, toConnectionKey(theirs, packet.target, packet.source));
    this.#latest = entry && { ends: packet.endsOnly(), ours, theirs, entry };
    return entry;
  }

  #of(ours: number, key: string): Entry | undefined {
    return this.#entries.get(ours)?.get(key);
  }

  #opening(): number {
    let count = 0;
    for (const ofPort of this.#entries.values())
      for (const { connection } of ofPort.values()) if (connection.isOpening) count += 1;
    return count;
  }

  #freePort(key: string): number {
    for (;;) {
      this.#port = this.#port >= LAST_PORT ? FIRST_PORT : this.#port + 1;
      if (!this.#of(this.#port, key)) return this.#port;
    }
  }

  #refuse({ seq, ack, flags, data }: Segment, ends: Connected): void {
    const length = data.byteLength + (flags & (FLAG.syn | FLAG.fin) ? 1 : 0);
    const how =
      flags & FLAG.ack
        ? { seq: ack, ack: 0, flags: FLAG.rst }
        : { seq: 0, ack: plus(seq, length), flags: FLAG.rst | FLAG.ack };
    this.#o.carry(encodeSegment(ends, { ...how, window: 0 }));
  }
}

/** Returns a string for both addresses and the peer's port. */
const toConnectionKey = (theirPort: number, ours: Uint8Array, theirs: Uint8Array): string =>
  `${theirPort}|${addressKey(ours)}${addressKey(theirs)}`;

/** How long a connection counts as interactive after typing. */
const TYPING_MS = 1_000;

/** Tracks which connections with the peer are typed on, so that bulk transfers on others leave room. [TL-24] */
class Typing<Connection> {
  readonly #clock: Clock;
  /** Time of the last typing on each connection, oldest first. */
  readonly #latest = new Map<Connection, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Records a write. A small write followed by bulk data, as in a download, is not typing. */
  written(connection: Connection, isLittle: boolean): void {
    if (this.#latest.size > 0) this.#latest.delete(connection);
    if (isLittle) this.#latest.set(connection, this.#clock.monotonic());
  }

  /** True if someone is typing on another connection. Also removes expired entries, since this runs for every acknowledgment. */
  isBeside(connection: Connection): boolean {
    if (this.#latest.size === 0) return false;
    const since = this.#clock.monotonic() - TYPING_MS;
    for (const [one, at] of this.#latest) {
      if (at < since) this.#latest.delete(one);
      else if (one !== connection) return true;
    }
    return false;
  }

  /** The connection has ended. */
  forget(connection: Connection): void {
    this.#latest.delete(connection);
  }
}
