// Bounds the memory of pages of rows that can each have megabytes, such as messages of chats: a page stays in memory until its client has read
// it, so that a hundred clients that do not read would fill the machine (rule HT-51).
import { AppError } from "#base/errors.ts";
import { shareOfMemory } from "#base/system/memory.ts";

/** What a large page takes: its rows, its JSON, and the bytes of that. */
const PAGE_BYTES = 16 * 1024 * 1024;
const MEMORY_SHARE = 1 / 8;
const MIN_SLOTS = 8;
/** More than this many readers waiting for a slot get 503. */
const MAX_WAITING = 1_000;
/** A smaller answer frees its slot when it is complete, because its client cannot hold much. */
const LARGE_BYTES = 256 * 1024;
const PIECE_BYTES = 64 * 1024;
/**
 * Bytes of pages after which their garbage is collected if the memory is half full. Each byte leaves four behind, and the runtime, which goes by
 * the memory of the whole machine, would collect them too late for a container.
 */
const COLLECT_BYTES = Math.min(shareOfMemory(1 / 32), 64 * 1024 * 1024);
const COLLECT_SHARE = 1 / 2;

/** Frees a slot, once. `bytes`: the size of the page that was sent. */
export type FreeSlot = (bytes: number) => void;

type Waiting = { readonly holder: string; readonly start: () => void };

export class PageSlots {
  readonly #total: number;
  readonly #heldBy = new Map<string, number>();
  readonly #waiting: Waiting[] = [];
  readonly #answers = new WeakMap<Request, FreeSlot>();
  #busy = 0;
  /** Bytes of pages since the last collection. */
  #sent = 0;

  constructor(total = Math.max(MIN_SLOTS, Math.floor(shareOfMemory(MEMORY_SHARE) / PAGE_BYTES))) {
    this.#total = total;
  }

  /**
   * Resolves with a function that frees the slot, once one is free: one person holds at most half of them. Rejects with 503 when too many
   * wait.
   */
  async take(holder: string): Promise<FreeSlot> {
    if (this.#fits(holder)) this.#count(holder, 1);
    else {
      if (this.#waiting.length >= MAX_WAITING)
        throw new AppError("overloaded", "Too many large pages are being read. Please retry.");
      await new Promise<void>((start) => this.#waiting.push({ holder, start }));
    }
    let isTaken = true;
    return (bytes) => {
      if (!isTaken) return;
      isTaken = false;
      this.#collect(bytes);
      this.#free(holder);
    };
  }

  /** Takes a slot until the answer to this request has been sent (`finish`). */
  async takeForAnswer(request: Request, holder: string): Promise<void> {
    this.#answers.set(request, await this.take(holder));
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

  #collect(bytes: number): void {
    this.#sent += bytes;
    if (this.#sent < COLLECT_BYTES) return;
    this.#sent = 0;
    if (process.memoryUsage.rss() > shareOfMemory(COLLECT_SHARE)) Bun.gc(true);
  }

  #fits(holder: string): boolean {
    return this.#busy < this.#total && (this.#heldBy.get(holder) ?? 0) < Math.ceil(this.#total / 2);
  }

  #count(holder: string, by: 1 | -1): void {
    this.#busy += by;
    const held = (this.#heldBy.get(holder) ?? 0) + by;
    if (held === 0) this.#heldBy.delete(holder);
    else this.#heldBy.set(holder, held);
  }

  #free(holder: string): void {
    this.#count(holder, -1);
    const next = this.#waiting.findIndex((one) => this.#fits(one.holder));
    const [started] = next < 0 ? [] : this.#waiting.splice(next, 1);
    if (!started) return;
    this.#count(started.holder, 1);
    started.start();
  }
}

/** The runtime takes the next piece when the client has read the one before. */
const sendInPieces = (bytes: Uint8Array<ArrayBuffer>, free: () => void): ReadableStream<Uint8Array<ArrayBuffer>> => {
  let at = 0;
  return new ReadableStream(
    {
      pull(controller) {
        controller.enqueue(bytes.subarray(at, at + PIECE_BYTES));
        at += PIECE_BYTES;
        if (at < bytes.length) return;
        free();
        controller.close();
      },
      cancel: free,
    },
    { highWaterMark: 0 },
  );
};
