// Frames that leave together. Frames of the relay are one byte stream, so those of one turn of the event loop need one WebSocket message,
// not one each: a message costs a system call on either side, which is most of what a packet costs. They are joined as they come, in memory
// that all batches share in turn, since new memory for each costs more than the bytes. [TL-17]
import { HEADER_BYTES, MAX_FRAME, writeHead } from "./derp-frame.ts";

/** What has been joined leaves immediately when it is as large as this. */
export const JOIN_BYTES = 64 * 1024;
/** Most batches hold a few small frames; the others hold all there may be and one frame more. */
const SMALL_BYTES = 4 * 1024;
const LARGE_BYTES = JOIN_BYTES + HEADER_BYTES + MAX_FRAME;
const MAX_SPARE = 4;

export type FrameBatchOptions = {
  /** Sends these bytes as one message. They are there until it returns. */
  send(bytes: Uint8Array): void;
  /** Calls `run` when the turn of the event loop is over; `setImmediate` by default. A microtask would join nothing. */
  endOfTurn?(run: () => void): void;
};

const NONE = new Uint8Array(0);
/** Memory of batches that have left. */
const spare: Uint8Array[] = [];

export class FrameBatch {
  readonly #send: FrameBatchOptions["send"];
  readonly #endOfTurn: (run: () => void) => void;
  #buffer: Uint8Array = NONE;
  #bytes = 0;
  #isDue = false;

  constructor({ send, endOfTurn = setImmediate }: FrameBatchOptions) {
    this.#send = send;
    this.#endOfTurn = endOfTurn;
  }

  /** Takes a frame along; it leaves at the end of the turn, or now when there is enough. */
  add(frame: Uint8Array): void {
    const at = this.#room(frame.byteLength);
    this.#buffer.set(frame, at);
    this.#leave();
  }

  /** The same for a frame of a key and a packet, which is made where it leaves from. */
  put(type: number, key: Uint8Array, packet: Uint8Array): void {
    const length = key.byteLength + packet.byteLength;
    const at = this.#room(HEADER_BYTES + length);
    writeHead(this.#buffer, at, type, length);
    this.#buffer.set(key, at + HEADER_BYTES);
    this.#buffer.set(packet, at + HEADER_BYTES + key.byteLength);
    this.#leave();
  }

  /** Sends a frame immediately, behind what there is. */
  addNow(frame: Uint8Array): void {
    const at = this.#room(frame.byteLength);
    this.#buffer.set(frame, at);
    this.flush();
  }

  /** Sends what there is. */
  flush(): void {
    const [buffer, bytes] = [this.#buffer, this.#bytes];
    if (bytes === 0) return;
    this.clear();
    this.#send(buffer.subarray(0, bytes));
    if (buffer.byteLength === LARGE_BYTES && spare.length < MAX_SPARE) spare.push(buffer);
  }

  /** Forgets what there is. */
  clear(): void {
    this.#buffer = NONE;
    this.#bytes = 0;
  }

  /** Bytes that are to leave. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Where the next frame goes. */
  #room(length: number): number {
    const at = this.#bytes;
    this.#bytes = at + length;
    if (this.#bytes <= this.#buffer.byteLength) return at;
    const bigger = memory(this.#bytes);
    bigger.set(this.#buffer.subarray(0, at));
    this.#buffer = bigger;
    return at;
  }

  #leave(): void {
    if (this.#bytes >= JOIN_BYTES) this.flush();
    else if (!this.#isDue) {
      this.#isDue = true;
      this.#endOfTurn(() => {
        this.#isDue = false;
        this.flush();
      });
    }
  }
}

const memory = (bytes: number): Uint8Array => {
  if (bytes <= SMALL_BYTES) return new Uint8Array(SMALL_BYTES);
  return bytes <= LARGE_BYTES ? (spare.pop() ?? new Uint8Array(LARGE_BYTES)) : new Uint8Array(bytes);
};
