// Frames that leave together. Frames of the relay are one byte stream, so those of one turn of the event loop need one WebSocket message,
// not one each: a message costs a system call on either side, which is most of what a packet costs. [TL-17]

/** What has been joined leaves at once when it is as large as this. */
export const JOIN_BYTES = 64 * 1024;

export type FrameBatchOptions = {
  /** Sends these bytes as one message. */
  send(bytes: Uint8Array): void;
  /** Calls `run` when the turn of the event loop is over; `setImmediate` by default. A microtask would join nothing. */
  endOfTurn?(run: () => void): void;
};

export class FrameBatch {
  readonly #send: FrameBatchOptions["send"];
  readonly #endOfTurn: (run: () => void) => void;
  #frames: Uint8Array[] = [];
  #bytes = 0;

  constructor({ send, endOfTurn = setImmediate }: FrameBatchOptions) {
    this.#send = send;
    this.#endOfTurn = endOfTurn;
  }

  /** Takes a frame along; it leaves at the end of the turn, or now when there is enough. */
  add(frame: Uint8Array): void {
    this.#frames.push(frame);
    this.#bytes += frame.byteLength;
    if (this.#bytes >= JOIN_BYTES) this.flush();
    else if (this.#frames.length === 1) this.#endOfTurn(() => this.flush());
  }

  /** Sends a frame at once, behind what there is. */
  addNow(frame: Uint8Array): void {
    this.#frames.push(frame);
    this.flush();
  }

  /** Sends what there is. */
  flush(): void {
    const frames = this.#frames;
    if (frames.length === 0) return;
    this.clear();
    this.#send(frames.length === 1 ? (frames[0] as Uint8Array) : Buffer.concat(frames));
  }

  /** Forgets what there is. */
  clear(): void {
    this.#frames = [];
    this.#bytes = 0;
  }

  /** Bytes that are to leave. */
  get bytes(): number {
    return this.#bytes;
  }
}
