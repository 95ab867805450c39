// Holds connections to forwarded ports while the workspace is stopped or starting, up to a limit in number and time. The first connection
// after a quiet minute starts the workspace. Frequent retries of a program do not start it, or the workspace could never stay stopped.
import type { Clock, Timer } from "#base/clock.ts";
import { pause } from "#base/retry.ts";
import { type Duplex, WireError } from "#src/wire/index.ts";

/** Maximum number of held connections. */
export const MAX_HELD = 100;
/** Maximum time that a connection is held. A build may take minutes. */
export const MAX_HELD_MS = 10 * 60_000;
/** A connection within this time of the previous one, or of the stop, is treated as an automatic retry. */
export const RETRY_WINDOW_MS = 60_000;
/** How long programs in the workspace may take to start listening after the workspace has started. */
const LISTEN_TIMEOUT_MS = 60_000;
const RETRY_INTERVAL_MS = 500;

type Dial = (port: number) => Promise<Duplex>;

export class HeldConnections {
  readonly #clock: Clock;
  /** Connects to the workspace; undefined while it is unreachable. */
  #dial: Dial | undefined;
  #dialRetriesUntil = 0;
  /** Time of the last connection or of the stop. */
  #lastConnectionAt: number | undefined;
  #isStarting = true;
  #held = new Set<{ resolve: (dial: Dial) => void; reject: (error: Error) => void }>();
  #startRequest = Promise.withResolvers<void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Connects to a port of the workspace, once it is reachable. Rejects on timeout, or if the connection is not held. */
  async dial(port: number): Promise<Duplex> {
    const dial = this.#dial ?? (await this.#hold());
    const until = this.#dialRetriesUntil;
    for (;;) {
      try {
        return await dial(port);
      } catch (error) {
        const isStillStarting =
          error instanceof WireError && error.failure === "refused" && this.#clock.monotonic() < until;
        if (!isStillStarting || this.#dial !== dial) throw error;
      }
      await pause(this.#clock, RETRY_INTERVAL_MS);
    }
  }

  /** Connects all held connections when the workspace has become reachable. `isFresh`: true if the workspace has only just started. */
  open(dial: Dial, isFresh: boolean): void {
    this.#dial = dial;
    this.#dialRetriesUntil = this.#clock.monotonic() + (isFresh ? LISTEN_TIMEOUT_MS : 0);
    for (const { resolve } of this.#held) resolve(dial);
    this.#held.clear();
  }

  /** Called when the workspace has become unreachable, or its start has failed. */
  close(): void {
    this.#dial = undefined;
    this.#isStarting = false;
    this.#lastConnectionAt = this.#clock.monotonic();
    this.#startRequest = Promise.withResolvers();
    for (const { reject } of this.#held) reject(new Error("The workspace cannot be reached."));
    this.#held.clear();
  }

  /** Resolves when a connection should start the workspace. */
  async waitForStartRequest(): Promise<void> {
    await this.#startRequest.promise;
  }

  #hold(): Promise<Dial> {
    const now = this.#clock.monotonic();
    const isQuiet = now - (this.#lastConnectionAt ?? Number.NEGATIVE_INFINITY) >= RETRY_WINDOW_MS;
    this.#lastConnectionAt = now;
    if (!this.#isStarting && !isQuiet) throw new Error("The workspace is stopped.");
    if (this.#held.size >= MAX_HELD) throw new Error("Too many connections are waiting.");
    this.#isStarting = true;
    this.#startRequest.resolve();
    return new Promise<Dial>((resolve, reject) => {
      const end = (): void => {
        timer.cancel();
        this.#held.delete(held);
      };
      const held = {
        resolve: (dial: Dial) => {
          end();
          resolve(dial);
        },
        reject: (error: Error) => {
          end();
          reject(error);
        },
      };
      const timer: Timer = this.#clock.after(MAX_HELD_MS, () =>
        held.reject(new Error("The workspace took too long to start.")),
      );
      this.#held.add(held);
    });
  }
}
