// A socket between two nodes that carries frames in both directions. Data that the other side does not accept is buffered up to a limit.
// Each side sends a heartbeat once a second, and closes the connection after three missed heartbeats of its peer.
import type { Socket } from "bun";
import type { Clock, Timer } from "#base/clock.ts";
import type { NodeListener } from "./connect.ts";
import { type Frame, FrameReader, KIND, type Kind, toFrame } from "./node-frames.ts";

export const HEARTBEAT_INTERVAL_MS = 1_000;
/** Counted in ticks of this process, so that a process that was suspended does not close its connections. */
export const MAX_MISSED = 3;
/** Replaces `MAX_MISSED` while reading is paused because the peer does not accept responses. */
const MAX_MISSED_WHILE_PAUSED = 30;
/** If more bytes than this wait for the other side, no new calls are made. */
export const MAX_BUFFERED_BYTES = 16 * 1024 * 1024;
/** If more bytes of responses than this wait for the other side, no more calls are read. */
const MAX_RESPONSE_BYTES = 1024 * 1024;

export type WireSocket = Pick<Socket, "write" | "pause" | "resume" | "end" | "terminate">;

export type WireEvents = {
  /** True on the answering side, which stops reading while its responses are not accepted. The calling side always reads. */
  readonly answers: boolean;
  frame(frame: Frame): void;
  /** Called when the connection has ended. `unsent`: IDs of the calls whose frames were not sent completely. */
  over(unsent: ReadonlySet<number>): void;
};

export class NodeWire implements NodeListener {
  readonly #socket: WireSocket;
  readonly #events: WireEvents;
  readonly #reader = new FrameReader();
  readonly #timer: Timer;
  readonly #waiting: { id: number; bytes: Buffer }[] = [];
  #size = 0;
  #missedHeartbeats = 0;
  #isPaused = false;
  #isOver = false;

  constructor(clock: Clock, socket: WireSocket, events: WireEvents) {
    this.#socket = socket;
    this.#events = events;
    this.#timer = clock.every(HEARTBEAT_INTERVAL_MS, () => this.#tick());
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Returns whether so many bytes are waiting that no new calls should be made. */
  get isFull(): boolean {
    return this.#size > MAX_BUFFERED_BYTES;
  }

  send(kind: Kind, id: number, body?: Uint8Array | string): void {
    if (this.#isOver) return;
    const bytes = toFrame(kind, id, body);
    const taken = this.#size === 0 ? this.#write(bytes) : 0;
    if (taken === bytes.length) return;
    this.#waiting.push({ id, bytes: bytes.subarray(taken) });
    this.#size += bytes.length - taken;
    if (this.#events.answers && this.#size > MAX_RESPONSE_BYTES && !this.#isPaused) {
      this.#isPaused = true;
      this.#socket.pause();
    }
  }

  data(bytes: Buffer): void {
    this.#missedHeartbeats = 0;
    if (this.#isOver) return;
    const frames = this.#reader.readFrames(bytes);
    if (frames === "wrong") this.close();
    else for (const frame of frames) if (!this.#isOver && frame.kind !== KIND.alive) this.#events.frame(frame);
  }

  drain(): void {
    this.#missedHeartbeats = 0;
    for (let next = this.#waiting[0]; next; next = this.#waiting[0]) {
      const taken = this.#write(next.bytes);
      this.#size -= taken;
      if (taken < next.bytes.length) {
        next.bytes = next.bytes.subarray(taken);
        return;
      }
      this.#waiting.shift();
    }
    if (this.#isPaused) {
      this.#isPaused = false;
      this.#socket.resume();
    }
  }

  ended(): void {
    this.close();
  }

  failed(): void {
    this.close();
  }

  close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#timer.cancel();
    const unsent = new Set(this.#waiting.splice(0).map(({ id }) => id));
    if (unsent.size > 0) this.#socket.terminate();
    else this.#socket.end();
    this.#events.over(unsent);
  }

  #write(bytes: Buffer): number {
    return Math.max(0, this.#socket.write(bytes));
  }

  #tick(): void {
    if (this.#missedHeartbeats >= (this.#isPaused ? MAX_MISSED_WHILE_PAUSED : MAX_MISSED)) {
      this.close();
      return;
    }
    this.#missedHeartbeats += 1;
    if (this.#size === 0) this.send(KIND.alive, 0);
  }
}
