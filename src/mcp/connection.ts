// One connection to an MCP server, using the official client package, which is loaded with the first connection. Supports only tools;
// limits time, list sizes and response sizes (rules MC-1 to MC-4). Used by the server for an organization's servers, and by the daemon for
// a workspace's.
import { AsyncLocalStorage } from "node:async_hooks";
import type { Client, JsonSchemaValidator, jsonSchemaValidator, Transport } from "@modelcontextprotocol/client";
import type { Clock } from "#base/clock.ts";
import { pause } from "#base/retry.ts";
import { runInNewSpan } from "#base/spans.ts";
import type { AnswerMemory, ReserveMemory } from "#base/system/answer-memory.ts";
import { VERSION } from "#base/version.ts";
import type { StoredTool } from "#schema/chats/chat-context.ts";
import { type McpAnswer, toAnswer } from "./content.ts";
import { McpError, toMcpError } from "./failure.ts";
import { type Hide, hideNothing } from "./hidden.ts";
import { limitServerRequests } from "./server-requests.ts";
import { listTools } from "./tool-list.ts";

/** Timeout of connecting, in milliseconds (facts/chats 5.5). */
export const CONNECT_MS = 30_000;
/** Maximum time that a step of a turn waits for a changed list. */
const RELOAD_TIMEOUT_MS = 3_000;
/** After this many consecutive calls without an answer, the connection is considered broken. */
const MAX_SILENT_CALLS = 2;

/** Timeouts of a call. `silence_ms`: without an answer or progress. `total_ms`: in total. */
export type CallLimits = { readonly silence_ms: number; readonly total_ms: number };

export type OpenOptions = {
  readonly signal?: AbortSignal;
  readonly connect_ms?: number;
  /** The server's list of tools has changed; `getTools` returns the new one. */
  readonly onToolsChanged?: () => void;
  /** Removes secrets from the server's messages. */
  readonly hide?: Hide;
};

export class McpConnection {
  readonly #client: Client;
  readonly #transport: Transport;
  readonly #clock: Clock;
  readonly #hide: Hide;
  #tools: readonly StoredTool[];
  #relisted: Promise<void> | undefined;
  #isStale = false;
  #isOpen = true;
  #running = 0;
  /** The memory of running calls, as far as their callers limit it. */
  readonly #memories: Set<AnswerMemory>;
  #silent = 0;

  private constructor(
    { clock, hide }: { readonly clock: Clock; readonly hide: Hide },
    client: Client,
    transport: Transport,
    tools: readonly StoredTool[],
    memories: Set<AnswerMemory>,
  ) {
    this.#memories = memories;
    this.#clock = clock;
    this.#hide = hide;
    this.#client = client;
    this.#transport = transport;
    this.#tools = tools;
    client.onclose = () => {
      this.#isOpen = false;
    };
  }

  /** Connects and loads the list of tools. Throws McpError and leaves nothing open then. */
  static async open(
    clock: Clock,
    makeTransport: (findMemory: () => ReserveMemory) => Promise<Transport> | Transport,
    { signal, connect_ms = CONNECT_MS, onToolsChanged, hide = hideNothing }: OpenOptions = {},
  ): Promise<McpConnection> {
    const connectTimeout = new AbortController();
    const limit = clock.after(connect_ms, () => connectTimeout.abort());
    const ended = signal ? AbortSignal.any([connectTimeout.signal, signal]) : connectTimeout.signal;
    const times = { timeout: connect_ms, signal: ended };
    const memories = new Set<AnswerMemory>();
    let client: Client | undefined;
    let transport: Transport | undefined;
    try {
      client = await makeClient();
      transport = limitServerRequests(await makeTransport(() => makeReserve(memories)));
      await raceAbort(ended, client.connect(transport, times));
      const tools = hide(await raceAbort(ended, listTools(client, times)));
      const connection = new McpConnection({ clock, hide }, client, transport, tools, memories);
      client.setNotificationHandler("notifications/tools/list_changed", () => {
        connection.#isStale = true;
        onToolsChanged?.();
      });
      return connection;
    } catch (error) {
      const failure = connectTimeout.signal.aborted
        ? new McpError(`did not answer within ${connect_ms / 1_000} s`)
        : toMcpError(error, await waitForReason(clock, transport), { hide });
      void client?.close().catch(() => {});
      throw failure;
    } finally {
      limit.cancel();
    }
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** The tools as last listed, by the server's names. */
  get tools(): readonly StoredTool[] {
    return this.#tools;
  }

  /** Returns the tools, reloaded if the server has reported a change. */
  async getTools(): Promise<readonly StoredTool[]> {
    if (this.#isStale) {
      this.#isStale = false;
      this.#relisted = this.#reloadTools();
    }
    await this.#relisted;
    return this.#tools;
  }

  async #reloadTools(): Promise<void> {
    try {
      this.#tools = this.#hide(await listTools(this.#client, { timeout: RELOAD_TIMEOUT_MS }));
    } catch {
      // The next call reloads it.
      this.#isStale = true;
    } finally {
      this.#relisted = undefined;
    }
  }

  /**
   * Calls a tool and returns its result. Cancels the call on the server when the signal fires. Throws McpError if the server does not
   * answer, or the signal's reason.
   */
  call(
    name: string,
    args: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
    limits: CallLimits,
    memory?: AnswerMemory,
  ): Promise<McpAnswer> {
    const attributes = { "mcp.method.name": "tools/call", "gen_ai.tool.name": name, "rpc.system": "jsonrpc" };
    return runInNewSpan(
      () => ({ name: `tools/call ${name}`, kind: "client", attributes }),
      () => this.#call(name, args, signal, limits, memory),
    );
  }

  async #call(
    name: string,
    args: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
    { silence_ms, total_ms }: CallLimits,
    memory: AnswerMemory | undefined,
  ): Promise<McpAnswer> {
    const brokenOff = Promise.withResolvers<never>();
    brokenOff.promise.catch(() => {});
    this.#running += 1;
    if (memory) this.#memories.add(memory);
    const began = this.#clock.monotonic();
    try {
      const callRequest = sending.run(memory, () =>
        this.#client.callTool(
          { name, arguments: { ...args } },
          {
            signal,
            timeout: silence_ms,
            maxTotalTimeout: total_ms,
            resetTimeoutOnProgress: true,
            // Requests progress notifications.
            onprogress: () => {},
            onRequestStreamEnd: () =>
              void this.#clock.after(STREAM_END_TIMEOUT_MS, () => brokenOff.reject(new McpError(BROKEN_OFF))),
          },
        ),
      );
      const answer = toAnswer(this.#hide(await raceAbort(signal, Promise.race([callRequest, brokenOff.promise]))));
      this.#silent = 0;
      return answer;
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      const took = this.#clock.monotonic() - began;
      throw await this.#toFailure(error, took >= total_ms ? total_ms : silence_ms);
    } finally {
      this.#running -= 1;
      if (memory) this.#memories.delete(memory);
      // Delayed, because closing drops unsent data, and the server should receive the cancellation.
      if (!this.#isOpen && this.#running === 0) this.#clock.after(CLOSE_TIMEOUT_MS, () => void this.close());
    }
  }

  /** A connection whose calls fail is not considered open, whatever its transport reports. */
  async #toFailure(error: unknown, limit_ms: number): Promise<McpError> {
    const had = this.#transport.sessionId !== undefined;
    const how = { hadSession: had, limit_ms, hide: this.#hide };
    const failure = toMcpError(error, await waitForReason(this.#clock, this.#transport), how);
    if (failure.kind === "silent") this.#silent += 1;
    if (failure.kind === "lost" || failure.kind === "broken" || this.#silent >= MAX_SILENT_CALLS) this.#isOpen = false;
    return failure;
  }

  async close(): Promise<void> {
    this.#isOpen = false;
    await this.#client.close().catch(() => {});
  }
}

/** The memory of the call that a request is sent for. */
const sending = new AsyncLocalStorage<AnswerMemory | undefined>();

/** Returns what waits for the memory of a large answer to this request: of its call, or of any, because a server can answer it elsewhere. */
const makeReserve = (memories: ReadonlySet<AnswerMemory>): ReserveMemory => {
  const own = sending.getStore();
  return async (onLate) => {
    const running = own && memories.has(own) ? [own] : [...memories].toReversed();
    const memory = running.find(({ isReserved }) => !isReserved) ?? running[0];
    // It can have been interrupted, and the answer be that of another call.
    const markRead = await memory?.reserve(onLate).catch(() => undefined);
    return markRead ?? (() => {});
  };
};

/** How long a failed connection stays open for its last notification. */
const CLOSE_TIMEOUT_MS = 250;
/** The answer may still arrive after its stream ends. */
const STREAM_END_TIMEOUT_MS = 100;
const BROKEN_OFF = "the connection broke off before it answered";

const makeClient = async (): Promise<Client> => {
  const { Client, ProtocolError } = await import("@modelcontextprotocol/client");
  // The server's output schemas are not compiled and run here.
  const client = new Client(
    { name: "slipway", version: VERSION },
    // Opens the stream of changes if the newer protocol requires one.
    {
      capabilities: {},
      jsonSchemaValidator: TRUST_ALL,
      listChanged: { tools: { autoRefresh: false, onChanged: () => {} } },
    },
  );
  // Servers that send requests for capabilities that were not offered get an error that their tools can show.
  client.fallbackRequestHandler = async ({ method }) => {
    if (method === "elicitation/create") return { action: "decline" };
    if (method === "sampling/createMessage")
      throw new ProtocolError(REFUSED, "Slipway runs no models for MCP servers.");
    throw new ProtocolError(METHOD_NOT_FOUND, `Slipway does not answer ${method}.`);
  };
  return client;
};

const REFUSED = -1;
const METHOD_NOT_FOUND = -32_601;

/** Transports that know why they ended report it. */
type Ending = { readonly reason?: () => Promise<string | undefined> };

/** A program that is about to end gets a moment to report why. */
const REASON_TIMEOUT_MS = 1_000;

const waitForReason = async (clock: Clock, transport: (Transport & Ending) | undefined): Promise<string | undefined> =>
  transport?.reason && Promise.race([transport.reason(), pause(clock, REASON_TIMEOUT_MS).then(() => undefined)]);

const TRUST_ALL: jsonSchemaValidator = {
  getValidator:
    <T>(): JsonSchemaValidator<T> =>
    (input) => ({ valid: true, data: input as T, errorMessage: undefined }),
};

/** Resolves with the work, or rejects with the signal's reason: some transports notice a signal late, and callers do not wait for them. */
export const raceAbort = <T>(signal: AbortSignal, work: Promise<T>): Promise<T> => {
  const { promise, reject } = Promise.withResolvers<never>();
  const onAbort = (): void => reject(signal.reason);
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort, { once: true });
  work.catch(() => {});
  return Promise.race([work, promise]).finally(() => signal.removeEventListener("abort", onAbort));
};
