// The daemon's connection to its server: connects, greets, and reconnects forever (rules DM-1 to DM-3). Callers use `ask`, which waits for
// a connection and retries when one breaks, so that they never see network failures.
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import type { Random } from "#base/random.ts";
import { pause } from "#base/retry.ts";
import { createAgentClient, WireError, type YamuxSession } from "#src/wire/index.ts";
import type { AgentToken } from "../agent-token.ts";
import { dial, TokenRefused } from "./dial.ts";
import { reconnect } from "./reconnect.ts";

export type AgentApi = ReturnType<typeof createAgentClient>;

/** One call. It may be retried when the connection breaks, so it must be idempotent. */
export type Call<T> = (api: AgentApi, signal: AbortSignal) => Promise<T>;

/** The daemon is stopping and makes no more calls. */
export class DaemonStopped extends Error {
  override readonly name = "DaemonStopped";
}

export type ConnectionOptions = {
  url: URL;
  token: Pick<AgentToken, "value" | "accept" | "refuse">;
  clock: Clock;
  random: Random;
  /** Runs on each new connection before other calls. If it fails, the connection is closed. */
  greet: Call<void>;
  /** Fires when the daemon is asked to end and little time is left for pending reports. */
  ending?: AbortSignal;
};

type OpenConnection = { session: YamuxSession; api: AgentApi };

const PING_COUNT = 5;
const REUSE_DELAY_MS = 2_000;
const CALL_TIMEOUT_MS = 60_000;

export class Connection {
  readonly #options: ConnectionOptions;
  readonly #stop = new AbortController();
  readonly #refused = Promise.withResolvers<void>();
  #live: OpenConnection | undefined;
  #next = Promise.withResolvers<OpenConnection>();

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#next.promise.catch(() => {});
  }

  /** Connects and reconnects. Resolves after `stop`; never rejects. */
  async run(): Promise<void> {
    const { clock, random, ending } = this.#options;
    await reconnect({
      failure: "not connected",
      clock,
      random,
      signal: this.#stop.signal,
      ...(ending ? { hurry: ending } : {}),
      once: () => this.#runOnce(),
    });
    this.#next.reject(new DaemonStopped("The daemon stops."));
  }

  /** True while there is a connection on which the server has accepted the token. */
  get isOpen(): boolean {
    return this.#live !== undefined;
  }

  /** Resolves when the server rejects every token: a newer build exists, and nothing more can be delivered. */
  get refused(): Promise<void> {
    return this.#refused.promise;
  }

  /** Closes the connection for good. Pending calls reject with `DaemonStopped`. */
  stop(): void {
    this.#stop.abort();
    this.#live?.session.close("The daemon stops.");
  }

  /** Returns the result of a call. Retries on new connections. Throws RpcError for errors from the server, and DaemonStopped. */
  async ask<T>(call: Call<T>): Promise<T> {
    for (;;) {
      const live = this.#live ?? (await this.#next.promise);
      if (this.#stop.signal.aborted) throw new DaemonStopped("The daemon stops.");
      try {
        return await this.#call(live.api, call);
      } catch (error) {
        if (!(error instanceof WireError)) throw error;
        // Whether the server received the call is unknown, and other calls on this connection would fail too.
        this.#end(live, "A call failed.");
      }
    }
  }

  /** Runs `use` on each connection until the signal fires, and again on the same connection if `use` ends first. Never rejects. */
  async forEachSession(use: (session: YamuxSession) => Promise<void>, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    while (!signal.aborted && !this.#stop.signal.aborted) {
      const live = this.#live ?? (await this.#next.promise.catch(() => undefined));
      if (!live || signal.aborted) return;
      await use(live.session).catch((error) => log("daemon").debug("using the connection failed: {error}", { error }));
      if (this.#live === live) await Promise.race([pause(clock, REUSE_DELAY_MS, signal), live.session.closed]);
    }
  }

  /** Measures the round trip to the server in milliseconds, as the median of a few pings; undefined without a connection. */
  async measureRoundTrip(): Promise<number | undefined> {
    const durations: number[] = [];
    for (let remaining = PING_COUNT; remaining > 0; remaining--) {
      const duration_ms = await this.#live?.session.ping();
      if (duration_ms !== undefined) durations.push(duration_ms);
    }
    return durations.sort((a, b) => a - b)[Math.floor(durations.length / 2)];
  }

  /** Handles one connection from dialing to its end and returns the reason it ended. */
  async #runOnce(): Promise<Error> {
    const { url, token: tokens, clock, greet } = this.#options;
    const { signal } = this.#stop;
    const token = tokens.value;
    try {
      const session = await dial({ url, token, clock, signal });
      tokens.accept(token);
      const live = { session, api: createAgentClient(session) };
      const closeSession = (): void => session.close("The daemon stops.");
      signal.addEventListener("abort", closeSession, { once: true });
      try {
        if (signal.aborted) closeSession();
        await this.#call(live.api, greet);
        this.#open(live);
        const failure = await session.closed;
        return failure ?? new Error("The server closed the connection.");
      } finally {
        signal.removeEventListener("abort", closeSession);
        this.#end(live, "The greeting failed.");
      }
    } catch (error) {
      if (error instanceof TokenRefused && tokens.refuse(token)) this.#refused.resolve();
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

  #open(live: OpenConnection): void {
    this.#live = live;
    this.#next.resolve(live);
    log("daemon").info("connected");
  }

  #end(live: OpenConnection, reason: string): void {
    live.session.close(reason);
    if (this.#live !== live) return;
    this.#live = undefined;
    this.#next = Promise.withResolvers<OpenConnection>();
    this.#next.promise.catch(() => {});
  }
}
