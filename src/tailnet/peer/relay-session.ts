// The client's side of one connection to a relay (facts/wire 3.2): the introduction, then packets both ways. It knows no socket: bytes come in
// by `push` and leave by `write`. [TL-27]
import { KEY_BYTES, type KeyPair, open, seal, sharedKey } from "../box.ts";
import { encodeFrame, FRAME, FrameError, FrameReader, MAGIC } from "../derp-frame.ts";
import { FrameBatch } from "../frame-batch.ts";

export type RelaySessionOptions = {
  key: KeyPair;
  /** The bytes are there until it returns. */
  write(bytes: Uint8Array): void;
  /** The relay knows us. */
  ready(): void;
  receive(from: Uint8Array, packet: Uint8Array): void;
  /** A peer that was sent to is not at the relay. */
  gone?(key: Uint8Array): void;
};

const INFO = new TextEncoder().encode(JSON.stringify({ version: 2, meshKey: "", CanAckPings: true, IsProber: false }));

export class RelaySession {
  readonly #o: RelaySessionOptions;
  readonly #reader = new FrameReader();
  readonly #batch: FrameBatch;
  #shared: Uint8Array | undefined;
  #isReady = false;

  constructor(options: RelaySessionOptions) {
    this.#o = options;
    this.#batch = new FrameBatch({ send: (bytes) => options.write(bytes) });
  }

  /** Bytes of the relay. Throws FrameError when it breaks the rules. */
  push(bytes: Uint8Array): void {
    for (const { type, payload } of this.#reader.push(bytes)) this.#take(type, payload);
  }

  /** Sends a packet, with what else leaves in this turn; it is copied. False before the introduction. */
  send(to: Uint8Array, packet: Uint8Array): boolean {
    if (this.#isReady) this.#batch.put(FRAME.send_packet, to, packet);
    return this.#isReady;
  }

  /** Nothing more is sent. */
  close(): void {
    this.#isReady = false;
    this.#batch.clear();
  }

  #take(type: number, payload: Uint8Array): void {
    if (type === FRAME.receive_packet) {
      if (payload.byteLength < KEY_BYTES) throw new FrameError("a packet without a whole address");
      this.#o.receive(payload.subarray(0, KEY_BYTES), payload.subarray(KEY_BYTES));
    } else if (type === FRAME.server_key) this.#introduce(payload);
    else if (type === FRAME.server_info) {
      if (!this.#shared || !open(this.#shared, payload)) throw new FrameError("the relay does not prove its key");
      this.#isReady = true;
      this.#batch.add(encodeFrame(FRAME.note_preferred, Uint8Array.of(1)));
      this.#o.ready();
    } else if (type === FRAME.ping) this.#batch.add(encodeFrame(FRAME.pong, payload));
    else if (type === FRAME.peer_gone && payload.byteLength >= KEY_BYTES) this.#o.gone?.(payload.slice(0, KEY_BYTES));
  }

  #introduce(payload: Uint8Array): void {
    const isRelay = payload.byteLength >= MAGIC.byteLength + KEY_BYTES && MAGIC.every((byte, i) => payload[i] === byte);
    const key = payload.slice(MAGIC.byteLength, MAGIC.byteLength + KEY_BYTES);
    this.#shared = isRelay ? sharedKey(this.#o.key.secret, key) : undefined;
    if (!this.#shared) throw new FrameError("that is no relay");
    this.#batch.addNow(encodeFrame(FRAME.client_info, this.#o.key.public, seal(this.#shared, INFO)));
  }
}
