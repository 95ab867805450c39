// A pool of connections to MCP servers, shared by turns: opened on demand, kept while used, closed after five idle minutes. A failed server
// is retried with exponential backoff, so that turns do not wait for it repeatedly (rules MC-4, MC-5).

import type { Clock } from "#base/clock.ts";
import type { AnswerMemory } from "#base/system/answer-memory.ts";
import { type CallLimits, type McpConnection, raceAbort } from "./connection.ts";
import type { McpAnswer } from "./content.ts";
import { McpError } from "./failure.ts";
import type { Fetch } from "./fetch.ts";
import { hideHeaders } from "./hidden.ts";
import { openHttp } from "./http.ts";
import { callWithRenewal } from "./renewal.ts";

export type McpTarget = {
  /** Changes whenever any property of the target does, including headers. */
  readonly key: string;
  readonly url: URL;
  readonly kind: "http" | "sse";
  readonly headers: Readonly<Record<string, string>>;
  /** Returns the target with a new token, for a server that refuses one before it expires; undefined if there is no new token. */
  readonly renew?: () => Promise<McpTarget | undefined>;
};

type Entry = {
  readonly opened: Promise<McpConnection>;
  connection?: McpConnection;
  used_at: number;
  failed_at?: number;
  /** Number of consecutive failures. */
  failures: number;
  /** Whether a turn has waited for the connection until its timeout. */
  is_late: boolean;
};

const MAX_CONNECTIONS = 500;
const IDLE_MS = 5 * 60_000;
/** Initial and maximum backoff after a failure. It doubles with every failure. */
const MIN_BACKOFF_MS = 30_000;
const MAX_BACKOFF_MS = 10 * 60_000;
/** How long a step of a turn waits for a server, and for a server that failed before. A late server is available to the next step. */
const CONNECT_WAIT_MS = 3_000;
const RECONNECT_WAIT_MS = 2_000;

const computeBackoff = (failures: number): number =>
  Math.min(MIN_BACKOFF_MS * 2 ** Math.max(0, failures - 1), MAX_BACKOFF_MS);

/** `memory`: waits before a large answer is read. */
type CallOptions = { readonly signal: AbortSignal; readonly limits: CallLimits; readonly memory?: AnswerMemory };

export class McpPool {
  readonly #clock: Clock;
  readonly #fetch: Fetch;
  /** Ordered by last use, most recent last. */
  readonly #entries = new Map<string, Entry>();
  readonly #stopping = new AbortController();

  constructor(options: { clock: Clock; fetch: Fetch }) {
    this.#clock = options.clock;
    this.#fetch = options.fetch;
  }

  /** Returns the connection to this server. Throws McpError. */
  connect(target: McpTarget): Promise<McpConnection> {
    const now = this.#clock.monotonic();
    let entry = this.#entries.get(target.key);
    const isClosed = entry?.connection?.isOpen === false;
    const canRetry = entry !== undefined && isFailed(entry) && !isBackingOff(entry, now);
    if (!entry || isClosed || canRetry) entry = this.#open(target, entry?.failures ?? 0);
    entry.used_at = now;
    this.#entries.delete(target.key);
    this.#entries.set(target.key, entry);
    const [oldest = ""] = this.#entries.keys();
    if (this.#entries.size > MAX_CONNECTIONS) this.#drop(oldest);
    return entry.opened;
  }

  /**
   * Like `connect`, for a turn, which continues without a slow server. The first step waits for a limited time; the connection is then
   * opened in the background for the next step. Throws McpError, or the signal's reason.
   */
  connectInTime(target: McpTarget, signal: AbortSignal): Promise<McpConnection> {
    return retryWithNextToken(
      async () => target,
      async (loadTarget) => this.#connectInTime(await loadTarget(), signal),
    );
  }

  async #connectInTime(target: McpTarget, signal: AbortSignal): Promise<McpConnection> {
    const opened = this.connect(target);
    const entry = this.#entries.get(target.key);
    if (!entry || entry.connection || isFailed(entry)) return opened;
    opened.catch(() => {});
    if (entry.is_late) throw new McpError("it has not answered yet.");
    const wait_ms = entry.failures > 0 ? RECONNECT_WAIT_MS : CONNECT_WAIT_MS;
    const timedOut = Promise.withResolvers<never>();
    const timer = this.#clock.after(wait_ms, () => {
      entry.is_late = true;
      timedOut.reject(new McpError(`it did not answer within ${wait_ms / 1_000} s.`));
    });
    try {
      return await raceAbort(signal, Promise.race([opened, timedOut.promise]));
    } finally {
      timer.cancel();
    }
  }

  /** Calls a tool, in a new session if the server has forgotten the old one. Throws McpError, or the signal's reason. */
  call(
    target: () => Promise<McpTarget>,
    tool: string,
    args: Readonly<Record<string, unknown>>,
    { signal, limits, memory }: CallOptions,
  ): Promise<McpAnswer> {
    const call = (loadTarget: () => Promise<McpTarget>) =>
      callWithRenewal(
        async () => this.connect(await loadTarget()),
        (connection) => connection.call(tool, args, signal, limits, memory),
      );
    return retryWithNextToken(target, call);
  }

  #open({ url, kind, headers }: McpTarget, failures: number): Entry {
    const { signal } = this.#stopping;
    const opened = signal.aborted
      ? Promise.reject(new McpError("The server stops."))
      : openHttp(this.#clock, { url, kind, headers, fetch: this.#fetch }, { signal, hide: hideHeaders(headers) });
    const entry: Entry = { opened, used_at: 0, failures, is_late: false };
    opened.then(
      (connection) => {
        entry.connection = connection;
        entry.failures = 0;
      },
      () => {
        entry.failed_at = this.#clock.monotonic();
        entry.failures += 1;
      },
    );
    return entry;
  }

  /** Closes idle connections. Failed ones are kept until their backoff has passed. */
  sweep(): void {
    const now = this.#clock.monotonic();
    for (const [key, entry] of this.#entries) {
      const keep_ms = isFailed(entry) ? Math.max(IDLE_MS, 2 * computeBackoff(entry.failures)) : IDLE_MS;
      if (now - entry.used_at > keep_ms) this.#drop(key);
    }
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new McpError("The server stops."));
    for (const key of [...this.#entries.keys()]) this.#drop(key);
  }

  #drop(key: string): void {
    const entry = this.#entries.get(key);
    this.#entries.delete(key);
    void entry?.opened.then((connection) => connection.close()).catch(() => {});
  }
}

const UNAUTHORIZED = 401;

/** Runs the work, and retries with a new token if the server refuses the current one. */
const retryWithNextToken = async <T>(
  target: () => Promise<McpTarget>,
  work: (target: () => Promise<McpTarget>) => Promise<T>,
): Promise<T> => {
  const current = await target();
  try {
    return await work(async () => current);
  } catch (error) {
    const isRefused = error instanceof McpError && error.status === UNAUTHORIZED;
    const renewed = isRefused ? await current.renew?.() : undefined;
    if (!renewed) throw error;
    return work(async () => renewed);
  }
};

const isFailed = ({ failed_at }: Entry): boolean => failed_at !== undefined;
const isBackingOff = ({ failed_at = 0, failures }: Entry, now: number): boolean =>
  now - failed_at <= computeBackoff(failures);
