// All TCP connections with one peer: dispatches segments, offers new connections, and refuses connections beyond its limits. The limits are
// on connections, on connections that are not open yet, and on unread bytes. [TL-23] [TL-26]
import type { Clock } from "#base/clock.ts";
import type { Random } from "#base/random.ts";
import { WireError } from "#src/wire/index.ts";
import { type AddressPair, type Packet, toAddressKey } from "../packets/ip6.ts";
import { encodeSegment, FLAG, parseSegment, type Segment, type SocketPair } from "../packets/segment.ts";
import { type Host, TcpConnection } from "./connection.ts";
import { addSeq, LARGE_SEGMENT } from "./sequence.ts";

export const MAX_CONNECTIONS = 1_024;
/** Maximum number of connections that are not established yet. */
export const MAX_OPENING = 128;
/** Maximum number of unread bytes of one peer, including overhead. */
export const MAX_HELD_BYTES = 32 * 1024 * 1024;
/** An offered connection that is not accepted within this time is refused. */
const ACCEPT_TIMEOUT_MS = 30_000;
/** How long an ended connection is kept, to repeat acknowledgments that were lost. */
const LINGER_MS = 5_000;
const MIN_EPHEMERAL_PORT = 49_152;
const MAX_EPHEMERAL_PORT = 65_000;

/** Called for a connection to `port`. Must call `accept` or `reset` on it, immediately or later. */
export type Accept = (connection: TcpConnection, port: number) => void;

export type StackOptions = {
  clock: Clock;
  random: Random;
  sendPacket(packet: Uint8Array): void;
  endOfTurn(run: () => void): void;
  accept: Accept;
  /** If false, segments have the standard maximum size, as in other implementations. */
  hasLargeSegments?: boolean;
};

type Entry = { readonly connection: TcpConnection; isOver: boolean };
/** The connection of the last packet, which usually also receives the next. */
type LastMatch = { readonly ends: Packet; readonly ours: number; readonly theirs: number; readonly entry: Entry };

export class TcpStack {
  readonly #options: StackOptions;
  readonly #host: Host;
  readonly #typing: Typing<TcpConnection>;
  readonly #entries = new Map<number, Map<string, Entry>>();
  #openCount = 0;
  #heldBytes = 0;
  #port: number;
  #lastMatch: LastMatch | undefined;

  constructor(options: StackOptions) {
    this.#options = options;
    this.#port = MIN_EPHEMERAL_PORT + Math.floor(options.random() * 8_192);
    this.#typing = new Typing(options.clock);
    this.#host = {
      clock: options.clock,
      sendPacket: options.sendPacket,
      endOfTurn: options.endOfTurn,
      getFreeBytes: () => MAX_HELD_BYTES - this.#heldBytes,
      largeMss: options.hasLargeSegments === false ? undefined : LARGE_SEGMENT,
      written: (connection, isSmall) => this.#typing.onWrite(connection, isSmall),
      isTypingElsewhere: (connection) => this.#typing.isTypingElsewhere(connection),
      addHeld: (change) => {
        this.#heldBytes += change;
      },
    };
  }

  /** Returns the number of open connections, and the bytes buffered for them. */
  get figures(): { connections: number; held: number } {
    return { connections: this.#openCount, held: this.#heldBytes };
  }

  /** Takes a TCP packet from the peer. */
  push(packet: Packet): void {
    const segment = parseSegment(packet.payload);
    if (!segment) return;
    const { sourcePort: theirs, targetPort: ours } = segment;
    const entry = this.#find(packet, ours, theirs);
    if (entry && !(entry.isOver && segment.flags === FLAG.syn)) entry.connection.push(segment);
    else if (segment.flags & FLAG.rst) return;
    else
      this.#offer(segment, {
        source: packet.target.slice(),
        target: packet.source.slice(),
        sourcePort: ours,
        targetPort: theirs,
      });
  }

  /** Connects to this port of the peer. Throws WireError: `refused`, `closed`, `reset` when the signal fires. */
  async connect(ends: AddressPair, port: number, signal?: AbortSignal): Promise<TcpConnection> {
    if (this.#openCount >= MAX_CONNECTIONS)
      throw new WireError("too_large", "There are too many connections to this peer.");
    const connection = this.#add({
      ...ends,
      sourcePort: this.#allocatePort(toConnectionKey(port, ends.source, ends.target)),
      targetPort: port,
    });
    const acceptTimer = this.#options.clock.after(ACCEPT_TIMEOUT_MS, () =>
      connection.abandon("The peer does not answer."),
    );
    const onAbort = (): void => connection.reset("The connection was canceled.");
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      const opened = connection.dial();
      if (signal?.aborted) onAbort();
      await opened;
      return connection;
    } finally {
      acceptTimer.cancel();
      signal?.removeEventListener("abort", onAbort);
    }
  }

  /** Resumes all connections after a reconnect of the link, which has lost the data of the meantime. */
  resume(): void {
    for (const onPort of this.#entries.values()) for (const { connection } of onPort.values()) connection.resume();
  }

  /** Breaks all connections immediately, because the peer has left. */
  close(reason: string): void {
    for (const onPort of [...this.#entries.values()])
      for (const { connection } of [...onPort.values()]) connection.abandon(reason);
  }

  #offer(segment: Segment, ends: SocketPair): void {
    const isNew = (segment.flags & (FLAG.syn | FLAG.ack)) === FLAG.syn;
    if (!isNew || this.#openCount >= MAX_CONNECTIONS) {
      this.#sendReset(segment, ends);
      return;
    }
    // The segment is dropped: a real peer sends it again within a second.
    if (this.#countOpening() >= MAX_OPENING) return;
    const connection = this.#add(ends);
    connection.acceptSyn(segment);
    this.#options.clock.after(ACCEPT_TIMEOUT_MS, () => {
      if (connection.isOpening) connection.reset("It was not opened in time.");
    });
    this.#options.accept(connection, ends.sourcePort);
  }

  #add(ends: SocketPair): TcpConnection {
    const key = toConnectionKey(ends.targetPort, ends.source, ends.target);
    const entry: Entry = {
      connection: new TcpConnection(ends, this.#host, (failure) => this.#end(ends, key, entry, failure)),
      isOver: false,
    };
    let onPort = this.#entries.get(ends.sourcePort);
    if (!onPort) {
      onPort = new Map();
      this.#entries.set(ends.sourcePort, onPort);
    }
    onPort.set(key, entry);
    this.#lastMatch = undefined;
    this.#openCount += 1;
    return entry.connection;
  }

  #end(ends: SocketPair, key: string, entry: Entry, failure: WireError | undefined): void {
    entry.isOver = true;
    this.#openCount -= 1;
    this.#typing.remove(entry.connection);
    const removeEntry = (): void => {
      const onPort = this.#entries.get(ends.sourcePort);
      if (onPort?.get(key) !== entry) return;
      onPort.delete(key);
      if (this.#lastMatch?.entry === entry) this.#lastMatch = undefined;
      if (onPort.size === 0) this.#entries.delete(ends.sourcePort);
    };
    if (failure) removeEntry();
    else this.#options.clock.after(LINGER_MS, removeEntry);
  }

  #find(packet: Packet, ours: number, theirs: number): Entry | undefined {
    const latest = this.#lastMatch;
    if (latest?.ours === ours && latest.theirs === theirs && packet.hasSameEnds(latest.ends)) return latest.entry;
    const entry = this.#findEntry(ours, toConnectionKey(theirs, packet.target, packet.source));
    this.#lastMatch = entry && { ends: packet.withoutPayload(), ours, theirs, entry };
    return entry;
  }

  #findEntry(ours: number, key: string): Entry | undefined {
    return this.#entries.get(ours)?.get(key);
  }

  #countOpening(): number {
    let count = 0;
    for (const onPort of this.#entries.values())
      for (const { connection } of onPort.values()) if (connection.isOpening) count += 1;
    return count;
  }

  #allocatePort(key: string): number {
    for (;;) {
      this.#port = this.#port >= MAX_EPHEMERAL_PORT ? MIN_EPHEMERAL_PORT : this.#port + 1;
      if (!this.#findEntry(this.#port, key)) return this.#port;
    }
  }

  #sendReset({ seq, ack, flags, data }: Segment, ends: SocketPair): void {
    const length = data.byteLength + (flags & (FLAG.syn | FLAG.fin) ? 1 : 0);
    const reply =
      flags & FLAG.ack
        ? { seq: ack, ack: 0, flags: FLAG.rst }
        : { seq: 0, ack: addSeq(seq, length), flags: FLAG.rst | FLAG.ack };
    this.#options.sendPacket(encodeSegment(ends, { ...reply, window: 0 }));
  }
}

/** Returns a string for both addresses and the peer's port. */
const toConnectionKey = (theirPort: number, ours: Uint8Array, theirs: Uint8Array): string =>
  `${theirPort}|${toAddressKey(ours)}${toAddressKey(theirs)}`;

/** How long a connection counts as interactive after typing. */
const TYPING_TTL_MS = 1_000;

/** Tracks the connections on which a person types, so that bulk transfers on others do not delay them. [TL-24] */
class Typing<Connection> {
  readonly #clock: Clock;
  /** Time of the last typing on each connection, oldest first. */
  readonly #lastMatch = new Map<Connection, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Records a write. A small write followed by bulk data, as in a download, is not typing. */
  onWrite(connection: Connection, isSmall: boolean): void {
    if (this.#lastMatch.size > 0) this.#lastMatch.delete(connection);
    if (isSmall) this.#lastMatch.set(connection, this.#clock.monotonic());
  }

  /** Returns whether a person is typing on another connection. Runs for every acknowledgment, so it also removes expired entries. */
  isTypingElsewhere(connection: Connection): boolean {
    if (this.#lastMatch.size === 0) return false;
    const since = this.#clock.monotonic() - TYPING_TTL_MS;
    for (const [one, at] of this.#lastMatch) {
      if (at < since) this.#lastMatch.delete(one);
      else if (one !== connection) return true;
    }
    return false;
  }

  /** Removes a connection that has ended. */
  remove(connection: Connection): void {
    this.#lastMatch.delete(connection);
  }
}
