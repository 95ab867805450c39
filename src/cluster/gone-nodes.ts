// Detects that a node has hung or disappeared while it was handling a forwarded request. Otherwise the client would wait until the
// connection breaks. The forwarding node checks whether the asked incarnation has ended: other nodes own its shards then, and its writes
// have no effect.
import type { Clock, Timer } from "#base/clock.ts";

const CHECK_INTERVAL_MS = 250;
/**
 * Number of checks without new data after which a gone node is cut off: a node that leaves in order gets time to finish its responses.
 * Counts checks of this process rather than time, so that a stall of this process does not cut the node off.
 */
const MAX_SILENT_CHECKS = 3;

export type ForwardedRequest = {
  /** Whether the request has ended, so that nothing waits for the node. */
  readonly isOver: boolean;
  /** Returns whether the incarnation that was asked has ended. */
  isGone(): boolean;
  /** Incremented whenever data arrives from the node. */
  readonly receivedCount: number;
  /** Whether the client is too slow, so that this process does not read from the node. */
  readonly isHeldUp: boolean;
  /** Stops waiting for the node. */
  cut(): void;
};

/** The state of the last check: data count, and the number of checks without new data. */
type Progress = { receivedCount: number; silentCount: number };

export class GoneNodeWatcher {
  readonly #watched = new Map<ForwardedRequest, Progress>();
  readonly #timer: Timer;

  constructor(clock: Clock) {
    this.#timer = clock.every(CHECK_INTERVAL_MS, () => this.#checkAll());
  }

  /** Watches a forwarded request until it is over. */
  watch(request: ForwardedRequest): void {
    this.#watched.set(request, { receivedCount: -1, silentCount: 0 });
  }

  end(): void {
    this.#timer.cancel();
    this.#watched.clear();
  }

  #checkAll(): void {
    for (const [request, progress] of this.#watched) {
      if (request.isOver) this.#watched.delete(request);
      else if (request.isGone()) this.#checkProgress(request, progress);
      else progress.silentCount = 0;
    }
  }

  #checkProgress(request: ForwardedRequest, progress: Progress): void {
    const isSilent = request.receivedCount === progress.receivedCount && !request.isHeldUp;
    progress.receivedCount = request.receivedCount;
    progress.silentCount = isSilent ? progress.silentCount + 1 : 0;
    if (progress.silentCount < MAX_SILENT_CHECKS) return;
    this.#watched.delete(request);
    request.cut();
  }
}
