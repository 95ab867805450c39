// One socket between two nodes, as frames in both directions. What the other side does not take waits here, bounded; each side says once a
// second that it lives, and who has said nothing for three such seconds is given up.
import type { Socket } from "bun";
import type { Clock, Timer } from "#base/clock.ts";
import type { NodeListener } from "./connect.ts";
import { type Frame, FrameReader, KIND, type Kind, toFrame } from "./node-frames.ts";

export const ALIVE_MS = 1_000;
/** Counted in ticks of our own: a process that stood still itself gives no connection up for that. */
export const MAX_MISSED = 3;
/** The same while nothing is read, because what was answered is not taken. */
const MAX_STALLED = 30;
/** Bytes that wait for the other side, alongside one frame; with more nothing is begun. */
export const MAX_BUFFERED_BYTES = 16 * 1024 * 1024;
/** Of answers. With more than that no more questions are read. */
const HIGH = 1024 * 1024;

export type WireSocket = Pick<Socket, "write" | "pause" | "resume" | "end" | "terminate">;

export type WireEvents = {
  /** This side answers: it reads no more while its answers are not taken. The side that asks always reads. */
  readonly answers: boolean;
  frame(frame: Frame): void;
  /** The connection is no more. `unsent`: numbers of the calls and channels whose frames have not gone out whole. */
  over(unsent: ReadonlySet<number>): void;
};

export class NodeWire implements NodeListener {
  readonly #socket: WireSocket;
  readonly #events: WireEvents;
  readonly #reader = new FrameReader();
  readonly #timer: Timer;
  readonly #waiting: { id: number; bytes: Buffer }[] = [];
  #size = 0;
  #silent = 0;
  #isPaused = false;
  #isOver = false;

  constructor(clock: Clock, socket: WireSocket, events: WireEvents) {
    this.#socket = socket;
    this.#events = events;
    this.#timer = clock.every(ALIVE_MS, () => this.#tick());
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** So much waits that nothing new should be begun. */
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
    if (this.#events.answers && this.#size > HIGH && !this.#isPaused) {
      this.#isPaused = true;
      this.#socket.pause();
    }
  }

  data(bytes: Buffer): void {
    this.#silent = 0;
    if (this.#isOver) return;
    const frames = this.#reader.take(bytes);
    if (frames === "wrong") this.close();
    else for (const frame of frames) if (!this.#isOver && frame.kind !== KIND.alive) this.#events.frame(frame);
  }

  drain(): void {
    this.#silent = 0;
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
    if (this.#silent >= (this.#isPaused ? MAX_STALLED : MAX_MISSED)) {
      this.close();
      return;
    }
    this.#silent += 1;
    if (this.#size === 0) this.send(KIND.alive, 0);
  }
}
