// Sends the frames of one turn of the event loop as one WebSocket message, which is possible because the relay's frames are a byte stream.
// Each message costs a system call on both sides, which is most of the cost of a packet. Frames are joined in reused memory, because
// allocating costs more than copying. [TL-17]
import { HEADER_BYTES, MAX_FRAME, writeHead } from "./derp-frame.ts";

/** A batch of this size is sent immediately. */
export const FLUSH_BYTES = 64 * 1024;
/** Most batches contain a few small frames. Larger batches can have the full size, plus one frame. */
const SMALL_BYTES = 4 * 1024;
const LARGE_BYTES = FLUSH_BYTES + HEADER_BYTES + MAX_FRAME;
const MAX_SPARE_BUFFERS = 4;

export type FrameBatchOptions = {
  /** Sends these bytes as one message. They are valid until the function returns. */
  send(bytes: Uint8Array): void;
  /** Calls `run` at the end of the turn of the event loop; `setImmediate` by default. A microtask would run too early to batch frames. */
  endOfTurn?(run: () => void): void;
};

const NO_BYTES = new Uint8Array(0);
/** Buffers for reuse. */
const spareBuffers: Uint8Array[] = [];

export class FrameBatch {
  readonly #send: FrameBatchOptions["send"];
  readonly #endOfTurn: (run: () => void) => void;
  #buffer: Uint8Array = NO_BYTES;
  #bytes = 0;
  #isDue = false;

  constructor({ send, endOfTurn = setImmediate }: FrameBatchOptions) {
    this.#send = send;
    this.#endOfTurn = endOfTurn;
  }

  /** Adds a frame, which is sent at the end of the turn, or immediately if the batch is full. */
  add(frame: Uint8Array): void {
    const at = this.#reserve(frame.byteLength);
    this.#buffer.set(frame, at);
    this.#scheduleFlush();
  }

  /** Adds a frame that consists of a key and a packet. Builds it in the batch, without a copy. */
  addPacket(type: number, key: Uint8Array, packet: Uint8Array): void {
    const length = key.byteLength + packet.byteLength;
    const at = this.#reserve(HEADER_BYTES + length);
    writeHead(this.#buffer, at, type, length);
    this.#buffer.set(key, at + HEADER_BYTES);
    this.#buffer.set(packet, at + HEADER_BYTES + key.byteLength);
    this.#scheduleFlush();
  }

  /** Sends a frame immediately, after the batched ones. */
  addNow(frame: Uint8Array): void {
    const at = this.#reserve(frame.byteLength);
    this.#buffer.set(frame, at);
    this.flush();
  }

  /** Sends the batch. */
  flush(): void {
    const [buffer, bytes] = [this.#buffer, this.#bytes];
    if (bytes === 0) return;
    this.clear();
    this.#send(buffer.subarray(0, bytes));
    if (buffer.byteLength === LARGE_BYTES && spareBuffers.length < MAX_SPARE_BUFFERS) spareBuffers.push(buffer);
  }

  /** Discards the batch. */
  clear(): void {
    this.#buffer = NO_BYTES;
    this.#bytes = 0;
  }

  /** The size of the batch in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Returns the position for the next frame. */
  #reserve(length: number): number {
    const at = this.#bytes;
    this.#bytes = at + length;
    if (this.#bytes <= this.#buffer.byteLength) return at;
    const larger = allocate(this.#bytes);
    larger.set(this.#buffer.subarray(0, at));
    this.#buffer = larger;
    return at;
  }

  #scheduleFlush(): void {
    if (this.#bytes >= FLUSH_BYTES) this.flush();
    else if (!this.#isDue) {
      this.#isDue = true;
      this.#endOfTurn(() => {
        this.#isDue = false;
        this.flush();
      });
    }
  }
}

const allocate = (bytes: number): Uint8Array => {
  if (bytes <= SMALL_BYTES) return new Uint8Array(SMALL_BYTES);
  return bytes <= LARGE_BYTES ? (spareBuffers.pop() ?? new Uint8Array(LARGE_BYTES)) : new Uint8Array(bytes);
};
