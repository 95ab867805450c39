// Connections to MCP servers that are shared by turns: made when first needed, kept while they are used, closed after five idle minutes. A
// server that failed is left alone for a while, so that no turn waits for it again and again (rules MC-4, MC-5).
import type { Clock } from "#base/clock.ts";
import { McpConnection, McpError } from "./connection.ts";
import { type Fetch, httpTransport } from "./http.ts";

export type McpTarget = {
  /** Another one whenever anything of it changes, headers included. */
  readonly key: string;
  readonly url: URL;
  readonly kind: "http" | "sse";
  readonly headers: Readonly<Record<string, string>>;
};

type Entry = {
  readonly opened: Promise<McpConnection>;
  connection?: McpConnection;
  used_at: number;
  failed_at?: number;
};

const MOST = 500;
const IDLE_MS = 5 * 60_000;
const LEFT_ALONE_MS = 30_000;

export class McpPool {
  readonly #clock: Clock;
  readonly #fetch: Fetch;
  /** The one that was used last stands last. */
  readonly #entries = new Map<string, Entry>();
  readonly #stopping = new AbortController();

  constructor(options: { clock: Clock; fetch: Fetch }) {
    this.#clock = options.clock;
    this.#fetch = options.fetch;
  }

  /** The connection to this server. Throws McpError. */
  connect(target: McpTarget): Promise<McpConnection> {
    const now = this.#clock.monotonic();
    let entry = this.#entries.get(target.key);
    const isGone = entry?.connection?.isOpen === false;
    const isForgiven = entry?.failed_at !== undefined && now - entry.failed_at > LEFT_ALONE_MS;
    if (!entry || isGone || isForgiven) entry = this.#open(target);
    entry.used_at = now;
    this.#entries.delete(target.key);
    this.#entries.set(target.key, entry);
    const [oldest = ""] = this.#entries.keys();
    if (this.#entries.size > MOST) this.#drop(oldest);
    return entry.opened;
  }

  #open({ url, kind, headers }: McpTarget): Entry {
    const { signal } = this.#stopping;
    const opened = signal.aborted
      ? Promise.reject(new McpError("The server stops."))
      : McpConnection.open(this.#clock, () => httpTransport({ url, kind, headers, fetch: this.#fetch }), signal);
    const entry: Entry = { opened, used_at: 0 };
    opened.then(
      (connection) => {
        entry.connection = connection;
      },
      () => {
        entry.failed_at = this.#clock.monotonic();
      },
    );
    return entry;
  }

  /** Closes what nobody has used for a while. */
  sweep(): void {
    const now = this.#clock.monotonic();
    for (const [key, { used_at }] of this.#entries) if (now - used_at > IDLE_MS) this.#drop(key);
  }

  idle(): Promise<void> {
    return Promise.resolve();
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
