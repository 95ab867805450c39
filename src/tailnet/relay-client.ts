// One connection to the relay: the introduction, then packets. Reading never waits for other clients: packets for a busy client wait in
// that client's bounded queue. A client that violates the protocol is disconnected with a reason; other clients are not affected. [TL-3] ..
// [TL-7]

import type { Clock, Timer } from "#base/clock.ts";
import { tryParseJson } from "#base/json/read.ts";
import { deriveSharedKey, KEY_BYTES, type KeyPair, NONCE_BYTES, open, seal } from "./box.ts";
import {
  DERP_MAGIC,
  encodeFrame,
  FRAME,
  type Frame,
  FrameError,
  FrameReader,
  isDiscovery,
  PEER_GONE_REASON,
} from "./derp-frame.ts";
import { FrameBatch } from "./frame-batch.ts";
import { PacketQueue, type QueuePool } from "./packet-queue.ts";

/** Has the same members as `Socket` in src/api/http/socket.ts. */
export interface RelaySocket {
  /**
   * Sends bytes, which must be valid until the function returns. Returns Bun's result: above 0 if they were sent, -1 if they were queued
   * and the socket is full (`drain` follows), 0 if they were dropped.
   */
  transmit(bytes: Uint8Array): number;
  close(code: number, reason: string): void;
}

const CLOSE = { protocol: 1002, unsupported: 1003, policy: 1008, tooBig: 1009 } as const;
const INTRODUCTION_TIMEOUT_MS = 10_000;
const SERVER_INFO = new TextEncoder().encode(JSON.stringify({ version: 2 }));
/** Maximum number of receivers that are notified when the client disconnects. Beyond it, the oldest receiver is not notified. */
const MAX_RECEIVERS = 1024;
/** Maximum number of "not here" replies per second. */
const MAX_NOT_HERE_REPLIES = 32;
const NOT_HERE_WINDOW_MS = 1_000;

const MESH_FRAMES: ReadonlySet<number> = new Set([
  FRAME.peer_present,
  FRAME.forward_packet,
  FRAME.watch_connections,
  FRAME.close_peer,
]);

/** The relay's interface for its clients. */
export interface RelayHub {
  readonly clock: Clock;
  readonly key: KeyPair;
  readonly pool: QueuePool;
  register(client: RelayClient): void;
  markActive(client: RelayClient): void;
  unregister(client: RelayClient): void;
  /** Returns false if no client has this address. */
  deliver(from: RelayClient, address: string, packet: Uint8Array): boolean;
}

export class RelayClient {
  /** The client's public key; empty until the client has proved it. */
  key: Uint8Array = new Uint8Array(0);
  /** The key in hex. */
  address = "";
  /** The addresses to which the client has sent packets. */
  readonly sentTo = new Set<string>();
  readonly #relay: RelayHub;
  readonly #socket: RelaySocket;
  readonly #reader = new FrameReader();
  readonly #queue: PacketQueue;
  readonly #batch = new FrameBatch({ send: (bytes) => this.#transmit(bytes) });
  readonly #introductionTimer: Timer;
  #isFull = false;
  #isEnded = false;
  #notHere = { since: 0, count: 0 };
  /** The receiver of the client's last packet, which usually also receives the next one. */
  #lastReceiver = { key: new Uint8Array(0), address: "" };

  constructor(relay: RelayHub, socket: RelaySocket) {
    this.#relay = relay;
    this.#queue = new PacketQueue(relay.pool);
    this.#socket = socket;
    this.#introductionTimer = relay.clock.after(INTRODUCTION_TIMEOUT_MS, () =>
      this.#closeWith(CLOSE.policy, "no introduction within 10 seconds"),
    );
    this.#batch.addNow(encodeFrame(FRAME.server_key, DERP_MAGIC, relay.key.public));
  }

  /** Takes a message from the socket. Message boundaries have no meaning. */
  push(message: string | Uint8Array): void {
    if (this.#isEnded) return;
    if (typeof message === "string") {
      this.#closeWith(CLOSE.unsupported, "only binary messages are allowed here");
      return;
    }
    try {
      for (const frame of this.#reader.push(message)) {
        this.#handleFrame(frame);
        if (this.#isEnded) return;
      }
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.#closeWith(error.tooBig ? CLOSE.tooBig : CLOSE.protocol, error.message);
    }
  }

  /** Called when the socket accepts bytes again. */
  drain(): void {
    this.#isFull = false;
    this.#flush();
  }

  /** Called when the socket has disconnected. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#batch.clear();
    this.#queue.clear();
    this.#introductionTimer.cancel();
    this.#relay.unregister(this);
  }

  /** Sends a short reply of the relay, ahead of packets. */
  sendControl(frame: Uint8Array): void {
    if (this.#isEnded) return;
    if (this.#isFull) this.#queue.put("control", frame);
    else this.#batch.add(frame);
  }

  /** Takes a packet from another client. */
  receive(from: Uint8Array, packet: Uint8Array): void {
    if (this.#isEnded) return;
    if (!this.#isFull) this.#batch.addPacket(FRAME.receive_packet, from, packet);
    else this.#queue.put(isDiscovery(packet) ? "discovery" : "packet", encodeFrame(FRAME.receive_packet, from, packet));
  }

  /** Number of queued bytes, and of dropped frames. */
  get waiting(): { bytes: number; dropped: number } {
    return { bytes: this.#queue.bytes + this.#batch.bytes, dropped: this.#queue.dropped };
  }

  #handleFrame({ type, payload }: Frame): void {
    if (this.address === "") this.#handleIntroduction(type, payload);
    else if (type === FRAME.send_packet) this.#forward(payload);
    else if (type === FRAME.ping) this.#answerPing(payload);
    else if (type === FRAME.client_info) throw new FrameError("introduced twice");
    else if (MESH_FRAMES.has(type)) this.#closeWith(CLOSE.policy, "this relay has no mesh");
    // Other frames are statistics or unknown and are skipped (facts/wire 3.2).
  }

  #answerPing(payload: Uint8Array): void {
    if (payload.byteLength !== 8) throw new FrameError("a ping has 8 bytes");
    this.#relay.markActive(this);
    this.sendControl(encodeFrame(FRAME.pong, payload));
  }

  #handleIntroduction(type: number, payload: Uint8Array): void {
    if (type !== FRAME.client_info) throw new FrameError("the first frame must introduce the client");
    if (payload.byteLength < KEY_BYTES + NONCE_BYTES) throw new FrameError("the introduction is cut off");
    const key = payload.slice(0, KEY_BYTES);
    const shared = deriveSharedKey(this.#relay.key.secret, key);
    const info = shared && open(shared, payload.subarray(KEY_BYTES));
    if (!shared || !info) {
      this.#closeWith(CLOSE.policy, "the introduction does not prove the key");
      return;
    }
    if (!isClientInfo(info)) throw new FrameError("the introduction makes no sense");
    this.#introductionTimer.cancel();
    this.key = key;
    this.address = Buffer.from(key).toString("hex");
    this.#relay.register(this);
    this.#batch.addNow(encodeFrame(FRAME.server_info, seal(shared, SERVER_INFO)));
  }

  #forward(payload: Uint8Array): void {
    if (payload.byteLength < KEY_BYTES) throw new FrameError("a packet without a whole address");
    const address = this.#readAddress(payload);
    this.#relay.markActive(this);
    if (this.#relay.deliver(this, address, payload.subarray(KEY_BYTES))) this.#rememberReceiver(address);
    else if (this.#canSendNotHere()) {
      this.sendControl(
        encodeFrame(FRAME.peer_gone, payload.subarray(0, KEY_BYTES), Uint8Array.of(PEER_GONE_REASON.not_here)),
      );
    }
  }

  #readAddress(payload: Uint8Array): string {
    const { key } = this.#lastReceiver;
    let unmatched = key.byteLength;
    while (unmatched > 0 && key[unmatched - 1] === payload[unmatched - 1]) unmatched -= 1;
    if (unmatched > 0 || key.byteLength === 0) {
      // Uint8Array's `slice` copies. The payload may be a Buffer, whose own `slice` does not.
      const copy = Uint8Array.prototype.slice.call(payload, 0, KEY_BYTES);
      this.#lastReceiver = { key: copy, address: Buffer.from(copy).toString("hex") };
    }
    return this.#lastReceiver.address;
  }

  #rememberReceiver(address: string): void {
    if (this.sentTo.has(address)) return;
    this.sentTo.add(address);
    if (this.sentTo.size <= MAX_RECEIVERS) return;
    for (const oldest of this.sentTo) {
      this.sentTo.delete(oldest);
      break;
    }
  }

  #canSendNotHere(): boolean {
    const now = this.#relay.clock.monotonic();
    if (now - this.#notHere.since >= NOT_HERE_WINDOW_MS) this.#notHere = { since: now, count: 0 };
    this.#notHere.count += 1;
    return this.#notHere.count <= MAX_NOT_HERE_REPLIES;
  }

  /** Sends queued frames in batches until the socket is full. */
  #flush(): void {
    while (!this.#isFull && !this.#isEnded) {
      const frame = this.#queue.take();
      if (frame === undefined) break;
      this.#batch.add(frame);
    }
    this.#batch.flush();
  }

  #transmit(bytes: Uint8Array): void {
    if (this.#socket.transmit(bytes) < 0) this.#isFull = true;
  }

  #closeWith(code: number, reason: string): void {
    // The client still gets the batched frames.
    this.#batch.flush();
    this.end();
    this.#socket.close(code, reason);
  }
}

const isClientInfo = (info: Uint8Array): boolean => {
  const parsed = tryParseJson(info);
  return typeof parsed === "object" && parsed !== null && !Array.isArray(parsed);
};
