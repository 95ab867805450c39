// Limits how many large pages, such as messages of chats, are read and sent at a time. A page stays in memory until its client has read it,
// so a hundred clients that don't read would fill the memory (rule HT-51).
import type { Clock } from "#base/clock.ts";
import { FairSlots } from "#base/concurrency-limit.ts";
import { AppError } from "#base/errors.ts";
import { GarbageCollection, shareOfMemory } from "#base/system/memory.ts";

/** The memory of a large page: its rows, its JSON text, and the encoded text. */
const PAGE_BYTES = 16 * 1024 * 1024;
const MEMORY_SHARE = 1 / 8;
const MIN_SLOTS = 8;
/** When this many readers wait, more readers get 503. */
const MAX_WAITING_READERS = 1_000;
/** Readers without a slot after this time get 503. */
const MAX_WAIT_MS = 10_000;
/**
 * A slot is freed after this time even if its client still reads. The client may be slow, or may have disconnected before the runtime had a
 * response to cancel.
 */
const MAX_HOLD_MS = 10_000;
/** A smaller answer frees its slot when it is complete, because its client cannot hold much. */
const LARGE_BYTES = 256 * 1024;
const PIECE_BYTES = 64 * 1024;
/** Frees a slot, once. `bytes`: the size of the page that was sent. */
export type FreeSlot = (bytes: number) => void;

export class PageSlots {
  readonly #slots: FairSlots;
  readonly #answers = new WeakMap<Request, FreeSlot>();
  readonly #sentInParts = new WeakSet<Request>();
  readonly #garbage = new GarbageCollection();
  readonly #clock: Clock;

  constructor(clock: Clock, total = Math.max(MIN_SLOTS, Math.floor(shareOfMemory(MEMORY_SHARE) / PAGE_BYTES))) {
    this.#clock = clock;
    const maxPerHolder = Math.ceil(total / 2);
    this.#slots = new FairSlots(clock, {
      total,
      each: maxPerHolder,
      waiting: MAX_WAITING_READERS,
      waiting_each: MAX_WAITING_READERS,
      wait_ms: MAX_WAIT_MS,
    });
  }

  /**
   * Waits for a free slot and resolves with the function that frees it. One person holds at most half of the slots, each for at most 10
   * seconds. Rejects with 503 when too many readers wait, or no slot is free in time.
   */
  async take(holder: string): Promise<FreeSlot> {
    const release = await this.#slots.take(holder);
    if (!release) throw new AppError("overloaded", "Too many large pages are being read. Please retry.");
    return this.#limitHold((bytes) => {
      this.#garbage.add(bytes);
      release();
    });
  }

  /** Takes a slot until the answer to this request has been sent (`finish`). */
  async acquireUntilAnswered(request: Request, holder: string): Promise<void> {
    this.#freeAfterAnswer(request, await this.take(holder));
  }

  /** Calls `release` when the response to the request has been sent (`finish`), or after ten seconds. */
  releaseAfterAnswer(request: Request, release: () => void): void {
    this.#freeAfterAnswer(request, this.#limitHold(release));
  }

  #freeAfterAnswer(request: Request, free: FreeSlot): void {
    if (request.signal.aborted) free(0);
    else this.#answers.set(request, free);
  }

  #limitHold(release: FreeSlot): FreeSlot {
    let isHeld = true;
    const free: FreeSlot = (bytes) => {
      if (!isHeld) return;
      isHeld = false;
      timer.cancel();
      release(bytes);
    };
    const timer = this.#clock.after(MAX_HOLD_MS, () => free(0));
    return free;
  }

  /** Returns the function that frees the slot of a request whose response is sent in parts; `finish` then does not free it. */
  takeOver(request: Request): FreeSlot {
    this.#sentInParts.add(request);
    const free = this.#answers.get(request) ?? (() => {});
    this.#answers.delete(request);
    return free;
  }

  isSentInParts(request: Request): boolean {
    return this.#sentInParts.has(request);
  }

  /** Returns the response to a request, which frees its slot when the client has read it or has disconnected. */
  async finish(request: Request, response: Response): Promise<Response> {
    const free = this.#answers.get(request);
    if (!free) return response;
    const { status, headers } = response;
    const bytes = new Uint8Array(await response.arrayBuffer());
    if (bytes.length >= LARGE_BYTES)
      return new Response(
        sendInPieces(bytes, () => free(bytes.length)),
        { status, headers },
      );
    free(bytes.length);
    return new Response(bytes, { status, headers });
  }

  /** Frees the slot of a request that failed. */
  drop(request: Request): void {
    this.#answers.get(request)?.(0);
  }
}

/** The runtime takes the next piece when the client has read the previous one. */
const sendInPieces = (bytes: Uint8Array<ArrayBuffer>, free: () => void): ReadableStream<Uint8Array<ArrayBuffer>> => {
  let offset = 0;
  return new ReadableStream(
    {
      pull(controller) {
        controller.enqueue(bytes.subarray(offset, offset + PIECE_BYTES));
        offset += PIECE_BYTES;
        if (offset < bytes.length) return;
        free();
        controller.close();
      },
      cancel: free,
    },
    { highWaterMark: 0 },
  );
};
