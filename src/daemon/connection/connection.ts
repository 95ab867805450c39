// The daemon's way to its server: connects, greets, and connects again forever (rules DM-1 to DM-3). Everyone else asks through
// `ask`, which waits for a connection and asks again when one breaks, so that callers never see the network.
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import type { Random } from "#base/random.ts";
import { pause } from "#base/retry.ts";
import { agentClient, WireError, type YamuxSession } from "#src/wire/index.ts";
import { dial, TokenRefused } from "./dial.ts";
import { reconnect } from "./reconnect.ts";

export type AgentApi = ReturnType<typeof agentClient>;

/** One call. It may be made again when the connection breaks, so it must be safe to repeat. */
export type Call<T> = (api: AgentApi, signal: AbortSignal) => Promise<T>;

/** The daemon stops: what was to be asked is not asked any more. */
export class Stopped extends Error {
  override readonly name = "Stopped";
}

export type ConnectionOptions = {
  url: URL;
  token: string;
  clock: Clock;
  random: Random;
  /** Runs on each new connection before anyone else may ask. When it fails the connection is given up. */
  greet: Call<void>;
  /** Fires when the daemon is told to end: what is still to be said has little time. */
  ending?: AbortSignal;
};

type Live = { session: YamuxSession; api: AgentApi };

const ROUND_TRIPS = 5;
const USE_AGAIN_MS = 2_000;
const CALL_TIMEOUT_MS = 60_000;

export class Connection {
  readonly #options: ConnectionOptions;
  readonly #stop = new AbortController();
  readonly #refused = Promise.withResolvers<void>();
  #live: Live | undefined;
  #next = Promise.withResolvers<Live>();

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#next.promise.catch(() => {});
  }

  /** Connects again and again. Resolves after `stop`; never rejects. */
  async run(): Promise<void> {
    const { clock, random, ending } = this.#options;
    const hurry = ending ? { hurry: ending } : {};
    const what = "not connected";
    await reconnect({ what, clock, random, signal: this.#stop.signal, ...hurry, once: () => this.#once() });
    this.#next.reject(new Stopped("The daemon stops."));
  }

  /** Whether there is a connection now on which the server has taken the token. */
  get isOpen(): boolean {
    return this.#live !== undefined;
  }

  /** Resolves when the server no longer takes the token: a newer build has come, and nothing more will be delivered. */
  get refused(): Promise<void> {
    return this.#refused.promise;
  }

  /** Closes the connection for good. Anyone who still asks gets `Stopped`. */
  stop(): void {
    this.#stop.abort();
    this.#live?.session.close("The daemon stops.");
  }

  /** The answer of one call, however many connections it takes. Throws RpcError for what the server said, and Stopped. */
  async ask<T>(call: Call<T>): Promise<T> {
    for (;;) {
      const live = this.#live ?? (await this.#next.promise);
      if (this.#stop.signal.aborted) throw new Stopped("The daemon stops.");
      try {
        return await this.#call(live.api, call);
      } catch (error) {
        if (!(error instanceof WireError)) throw error;
        // Nobody can tell what the server has seen of it. The rest of this connection is in no better state.
        this.#end(live, "A call broke.");
      }
    }
  }

  /** Runs `use` on each connection, one after the other, until the signal fires; again on the same when it ends before. Never rejects. */
  async eachSession(use: (session: YamuxSession) => Promise<void>, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    while (!signal.aborted && !this.#stop.signal.aborted) {
      const live = this.#live ?? (await this.#next.promise.catch(() => undefined));
      if (!live || signal.aborted) return;
      await use(live.session).catch((error) =>
        log("daemon").debug("a use of the connection broke: {error}", { error }),
      );
      if (this.#live === live) await Promise.race([pause(clock, USE_AGAIN_MS, signal), live.session.closed]);
    }
  }

  /** Milliseconds to the server and back, the median of a few tries now; undefined without a connection. */
  async roundTrip(): Promise<number | undefined> {
    const taken: number[] = [];
    for (let left = ROUND_TRIPS; left > 0; left--) {
      const took = await this.#live?.session.ping();
      if (took !== undefined) taken.push(took);
    }
    return taken.sort((a, b) => a - b)[Math.floor(taken.length / 2)];
  }

  /** One connection from dialling to its end; says why it ended. */
  async #once(): Promise<Error> {
    const { url, token, clock, greet } = this.#options;
    const { signal } = this.#stop;
    try {
      const session = await dial({ url, token, clock, signal });
      const live = { session, api: agentClient(session) };
      const hangUp = (): void => session.close("The daemon stops.");
      signal.addEventListener("abort", hangUp, { once: true });
      try {
        if (signal.aborted) hangUp();
        await this.#call(live.api, greet);
        this.#open(live);
        const failure = await session.closed;
        return failure ?? new Error("The server closed the connection.");
      } finally {
        signal.removeEventListener("abort", hangUp);
        this.#end(live, "The greeting failed.");
      }
    } catch (error) {
      if (error instanceof TokenRefused) this.#refused.resolve();
      return error instanceof Error ? error : new Error(String(error));
    }
  }

  async #call<T>(api: AgentApi, call: Call<T>): Promise<T> {
    const deadline = new AbortController();
    const timer = this.#options.clock.after(CALL_TIMEOUT_MS, () => deadline.abort());
    try {
      return await call(api, deadline.signal);
    } finally {
      timer.cancel();
    }
  }

  #open(live: Live): void {
    this.#live = live;
    this.#next.resolve(live);
    log("daemon").info("connected");
  }

  #end(live: Live, reason: string): void {
    live.session.close(reason);
    if (this.#live !== live) return;
    this.#live = undefined;
    this.#next = Promise.withResolvers<Live>();
    this.#next.promise.catch(() => {});
  }
}
