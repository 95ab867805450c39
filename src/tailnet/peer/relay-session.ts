// The client's side of one relay connection (facts/wire 3.2): the introduction, then packets in both directions. Independent of sockets:
// received bytes are passed to `push`, and `write` sends bytes. [TL-27]
import { deriveSharedKey, KEY_BYTES, type KeyPair, open, seal } from "../box.ts";
import { DERP_MAGIC, encodeFrame, FRAME, FrameError, FrameReader } from "../derp-frame.ts";
import { FrameBatch } from "../frame-batch.ts";

export type RelaySessionOptions = {
  key: KeyPair;
  /** Sends bytes, which are valid until the function returns. */
  write(bytes: Uint8Array): void;
  /** Called when the relay has accepted this peer. */
  ready(): void;
  receive(from: Uint8Array, packet: Uint8Array): void;
  /** Called when a packet's receiver is not connected to the relay. */
  gone?(key: Uint8Array): void;
};

const CLIENT_INFO = new TextEncoder().encode(
  JSON.stringify({ version: 2, meshKey: "", CanAckPings: true, IsProber: false }),
);

export class RelaySession {
  readonly #options: RelaySessionOptions;
  readonly #reader = new FrameReader();
  readonly #batch: FrameBatch;
  #shared: Uint8Array | undefined;
  #isReady = false;

  constructor(options: RelaySessionOptions) {
    this.#options = options;
    this.#batch = new FrameBatch({ send: (bytes) => options.write(bytes) });
  }

  /** Takes bytes from the relay. Throws FrameError for invalid frames. */
  push(bytes: Uint8Array): void {
    for (const { type, payload } of this.#reader.push(bytes)) this.#handleFrame(type, payload);
  }

  /** Copies a packet and sends it together with others of this turn. Returns false before the relay has accepted this peer. */
  send(to: Uint8Array, packet: Uint8Array): boolean {
    if (this.#isReady) this.#batch.addPacket(FRAME.send_packet, to, packet);
    return this.#isReady;
  }

  /** Stops sending. */
  close(): void {
    this.#isReady = false;
    this.#batch.clear();
  }

  #handleFrame(type: number, payload: Uint8Array): void {
    if (type === FRAME.receive_packet) {
      if (payload.byteLength < KEY_BYTES) throw new FrameError("a packet without a whole address");
      this.#options.receive(payload.subarray(0, KEY_BYTES), payload.subarray(KEY_BYTES));
    } else if (type === FRAME.server_key) this.#sendIntroduction(payload);
    else if (type === FRAME.server_info) {
      if (!this.#shared || !open(this.#shared, payload)) throw new FrameError("the relay did not prove its key");
      this.#isReady = true;
      this.#batch.add(encodeFrame(FRAME.note_preferred, Uint8Array.of(1)));
      this.#options.ready();
    } else if (type === FRAME.ping) this.#batch.add(encodeFrame(FRAME.pong, payload));
    else if (type === FRAME.peer_gone && payload.byteLength >= KEY_BYTES)
      this.#options.gone?.(payload.slice(0, KEY_BYTES));
  }

  #sendIntroduction(payload: Uint8Array): void {
    const isRelay =
      payload.byteLength >= DERP_MAGIC.byteLength + KEY_BYTES && DERP_MAGIC.every((byte, i) => payload[i] === byte);
    const key = payload.slice(DERP_MAGIC.byteLength, DERP_MAGIC.byteLength + KEY_BYTES);
    this.#shared = isRelay ? deriveSharedKey(this.#options.key.secret, key) : undefined;
    if (!this.#shared) throw new FrameError("that is not a relay");
    this.#batch.addNow(encodeFrame(FRAME.client_info, this.#options.key.public, seal(this.#shared, CLIENT_INFO)));
  }
}
