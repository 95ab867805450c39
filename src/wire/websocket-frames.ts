// The client side of WebSocket messages over any bidirectional channel: the server uses it for workspace programs after the handshake (rule
// AX-10). Limits the size of messages and rejects protocol violations. Masks with zeros, so that payload need not be copied: the path has
// no proxies, for whose protection masks exist.
import type { Duplex } from "./duplex.ts";
import { Lookahead } from "./lookahead.ts";
import { WireError } from "./wire-error.ts";

export type WebSocketMessage =
  | { kind: "text"; text: string }
  | { kind: "binary"; bytes: Uint8Array }
  | { kind: "ping" | "pong"; bytes: Uint8Array }
  | { kind: "close"; code: number; reason: string };

const OPCODE = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;
const FINAL = 0x80;
const MASKED = 0x80;
const MAX_CONTROL_BYTES = 125;
/** Messages up to this size are written together with their header. */
const MAX_JOINED_BYTES = 16 * 1024;
/** Shorter pieces of a message are joined, because a piece of one byte takes a hundred bytes of memory. */
const MIN_PIECE_BYTES = 1024;
const MAX_SHORT_PIECES = 1024;
/** Maximum number of empty frames in one message. */
const MAX_EMPTY_FRAMES = 1_000;
/** After this many frames, control returns to the event loop, because one chunk may contain a hundred thousand frames. */
const FRAMES_PER_TURN = 128;
/** The code that is reported for a close frame without a code. */
const NO_STATUS_CODE = 1005;

/** Limits the bytes of messages in memory. `add` may wait, and may throw to end the connection. */
export type MessageBudget = { add(bytes: number): void | Promise<void>; release(): void };

const NO_BUDGET: MessageBudget = { add: () => {}, release: () => {} };

export class WebSocketFrames {
  readonly #stream: Lookahead;
  readonly #limit: number;
  readonly #budget: MessageBudget;
  // The parts of an incomplete message. Control frames may arrive between them.
  #parts: Uint8Array[] = [];
  #shortParts: Uint8Array[] = [];
  #emptyFrameCount = 0;
  #size = 0;
  #frameCount = 0;
  #kind: "text" | "binary" | undefined;

  /**
   * `limit`: maximum size of a message in bytes. `budget`: a message counts from its first byte until the following call of `next`, or
   * `discard`.
   */
  constructor(stream: Duplex, limit: number, budget: MessageBudget = NO_BUDGET) {
    this.#stream = new Lookahead(stream);
    this.#limit = limit;
    this.#budget = budget;
  }

  /** Returns the next message; undefined if the channel ended without a close frame. Throws WireError, and errors of the budget. */
  async next(): Promise<WebSocketMessage | undefined> {
    if (this.#kind === undefined) this.#budget.release();
    for (;;) {
      const first = await this.#stream.read();
      if (first === undefined) return undefined;
      this.#stream.unread(first);
      if (++this.#frameCount % FRAMES_PER_TURN === 0) await new Promise<void>((resolve) => setImmediate(resolve));
      const { opcode, isFinal, length } = await this.#readHead();
      if (opcode >= OPCODE.close) {
        if (!isFinal || length > MAX_CONTROL_BYTES) throw toProtocolError("A control frame is malformed.");
        return decodeControl(opcode, await this.#stream.readExactly(length));
      }
      if ((opcode === OPCODE.continuation) !== (this.#kind !== undefined))
        throw toProtocolError("A message is not continued.");
      this.#kind ??= opcode === OPCODE.text ? "text" : "binary";
      this.#size += length;
      if (this.#size > this.#limit) throw new WireError("too_large", "The message is too large.");
      await this.#readParts(length);
      if (isFinal) return this.#finishMessage(this.#kind);
    }
  }

  async #readParts(length: number): Promise<void> {
    if (length === 0) this.#emptyFrameCount += 1;
    if (this.#emptyFrameCount > MAX_EMPTY_FRAMES) throw toProtocolError("A message has too many empty frames.");
    for (let missing = length; missing > 0; ) {
      const part = await this.#stream.readAtMost(missing);
      if (part === undefined) throw new WireError("closed", "The stream ended too early.");
      const added = this.#budget.add(part.byteLength);
      if (added) await added;
      this.#addPart(part);
      missing -= part.byteLength;
    }
  }

  #addPart(part: Uint8Array): void {
    if (part.byteLength >= MIN_PIECE_BYTES) {
      this.#joinShort();
      this.#parts.push(part);
      return;
    }
    this.#shortParts.push(part);
    if (this.#shortParts.length >= MAX_SHORT_PIECES) this.#joinShort();
  }

  #joinShort(): void {
    if (this.#shortParts.length === 0) return;
    this.#parts.push(
      this.#shortParts.length === 1 ? (this.#shortParts[0] as Uint8Array) : Buffer.concat(this.#shortParts),
    );
    this.#shortParts = [];
  }

  #finishMessage(kind: "text" | "binary"): WebSocketMessage {
    this.#joinShort();
    const bytes = this.#parts.length === 1 ? (this.#parts[0] as Uint8Array) : Buffer.concat(this.#parts);
    this.#parts = [];
    this.#emptyFrameCount = 0;
    this.#size = 0;
    this.#kind = undefined;
    return kind === "text" ? { kind, text: decode(bytes) } : { kind, bytes };
  }

  /** Whether a message has arrived only in part. */
  get isIncomplete(): boolean {
    return this.#kind !== undefined;
  }

  /** Drops the parts of an incomplete message, for a connection that is not read any more. */
  discard(): void {
    this.#parts = [];
    this.#shortParts = [];
    this.#budget.release();
  }

  /** Resolves when the message is sent. Calls are queued in order; the bytes must not change until then. */
  async send(message: WebSocketMessage): Promise<void> {
    const body = toBytes(message);
    const head = encodeHead(message.kind, body.byteLength);
    // Short messages are sent as one piece; long ones are not copied. The channel keeps the order of writes.
    const pieces = body.byteLength <= MAX_JOINED_BYTES ? [Buffer.concat([head, body])] : [head, body];
    await Promise.all(pieces.map((piece) => this.#stream.write(piece)));
  }

  /** Ends this side of the channel. */
  end(): Promise<void> {
    return this.#stream.end();
  }

  reset(reason: string): void {
    this.#stream.reset(reason);
  }

  async #readHead(): Promise<{ opcode: number; isFinal: boolean; length: number }> {
    const [first = 0, second = 0] = await this.#stream.readExactly(2);
    const opcode = first & 15;
    if ((first & 0x70) !== 0 || !KNOWN_OPCODES.has(opcode)) throw toProtocolError("A frame of an unknown kind came.");
    if ((second & MASKED) !== 0) throw toProtocolError("A server must not mask.");
    const short = second & 127;
    if (short < 126) return { opcode, isFinal: (first & FINAL) !== 0, length: short };
    const extended = await this.#stream.readExactly(short === 126 ? 2 : 8);
    const view = new DataView(extended.buffer, extended.byteOffset, extended.byteLength);
    const length = short === 126 ? view.getUint16(0) : Number(view.getBigUint64(0));
    if (length > this.#limit) throw new WireError("too_large", "The message is too large.");
    return { opcode, isFinal: (first & FINAL) !== 0, length };
  }
}

const KNOWN_OPCODES: ReadonlySet<number> = new Set(Object.values(OPCODE));

const toProtocolError = (reason: string): WireError => new WireError("protocol", reason);

const decode = (bytes: Uint8Array): string => {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw toProtocolError("A text is not UTF-8.");
  }
};

const decodeControl = (opcode: number, bytes: Uint8Array): WebSocketMessage => {
  if (opcode === OPCODE.ping) return { kind: "ping", bytes };
  if (opcode === OPCODE.pong) return { kind: "pong", bytes };
  if (bytes.byteLength === 0) return { kind: "close", code: NO_STATUS_CODE, reason: "" };
  if (bytes.byteLength === 1) throw toProtocolError("A close frame is truncated.");
  const code = new DataView(bytes.buffer, bytes.byteOffset, 2).getUint16(0);
  return { kind: "close", code, reason: new TextDecoder().decode(bytes.subarray(2)) };
};

/** Returns the header of a frame with this many bytes. */
const encodeHead = (kind: WebSocketMessage["kind"], length: number): Uint8Array => {
  const extendedBytes = length < 126 ? 0 : length < 65_536 ? 2 : 8;
  // Two bytes, the extended length, and a mask of zeros.
  const head = new Uint8Array(2 + extendedBytes + 4);
  const view = new DataView(head.buffer);
  head[0] = FINAL | OPCODE[kind];
  head[1] = MASKED | (extendedBytes === 0 ? length : extendedBytes === 2 ? 126 : 127);
  if (extendedBytes === 2) view.setUint16(2, length);
  if (extendedBytes === 8) view.setBigUint64(2, BigInt(length));
  return head;
};

const toBytes = (message: WebSocketMessage): Uint8Array => {
  if (message.kind === "text") return new TextEncoder().encode(message.text);
  if (message.kind !== "close") return message.bytes;
  if (message.code === NO_STATUS_CODE) return new Uint8Array(0);
  const reason = new TextEncoder().encode(message.reason).subarray(0, MAX_CONTROL_BYTES - 2);
  return Uint8Array.of(message.code >> 8, message.code & 255, ...reason);
};
