// One connection to an MCP server, using the official client package, which is loaded with the first connection. Supports only tools;
// limits time, list sizes and response sizes (rules MC-1 to MC-4). Used by the server for an organization's MCP servers, and by the daemon
// for a workspace's MCP servers.
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

/** Timeouts of a call: `silence_ms` without an answer or progress, `total_ms` in total. */
export type CallLimits = { readonly silence_ms: number; readonly total_ms: number };

export type OpenOptions = {
  readonly signal?: AbortSignal;
  readonly connect_ms?: number;
  /** Called when the server's list of tools has changed; `getTools` then returns the new list. */
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
  #reload: Promise<void> | undefined;
  #isStale = false;
  #isOpen = true;
  #runningCount = 0;
  /** The memory of running calls, of callers that limit it. */
  readonly #memories: Set<AnswerMemory>;
  #silentCalls = 0;

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

  /** Connects and loads the list of tools. If it fails, closes the connection and throws McpError. */
  static async open(
    clock: Clock,
    makeTransport: (findMemory: () => ReserveMemory) => Promise<Transport> | Transport,
    { signal, connect_ms = CONNECT_MS, onToolsChanged, hide = hideNothing }: OpenOptions = {},
  ): Promise<McpConnection> {
    const connectTimeout = new AbortController();
    const timer = clock.after(connect_ms, () => connectTimeout.abort());
    const stopSignal = signal ? AbortSignal.any([connectTimeout.signal, signal]) : connectTimeout.signal;
    const requestOptions = { timeout: connect_ms, signal: stopSignal };
    const memories = new Set<AnswerMemory>();
    let client: Client | undefined;
    let transport: Transport | undefined;
    try {
      client = await makeClient();
      transport = limitServerRequests(await makeTransport(() => makeReserve(memories)));
      await raceAbort(stopSignal, client.connect(transport, requestOptions));
      const tools = hide(await raceAbort(stopSignal, listTools(client, requestOptions)));
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
      timer.cancel();
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
      this.#reload = this.#reloadTools();
    }
    await this.#reload;
    return this.#tools;
  }

  async #reloadTools(): Promise<void> {
    try {
      this.#tools = this.#hide(await listTools(this.#client, { timeout: RELOAD_TIMEOUT_MS }));
    } catch {
      // The next call of `getTools` tries again.
      this.#isStale = true;
    } finally {
      this.#reload = undefined;
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
    const streamEnded = Promise.withResolvers<never>();
    streamEnded.promise.catch(() => {});
    this.#runningCount += 1;
    if (memory) this.#memories.add(memory);
    const startedAt = this.#clock.monotonic();
    try {
      const callRequest = callMemory.run(memory, () =>
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
              void this.#clock.after(STREAM_END_TIMEOUT_MS, () => streamEnded.reject(new McpError(STREAM_ENDED))),
          },
        ),
      );
      const answer = toAnswer(this.#hide(await raceAbort(signal, Promise.race([callRequest, streamEnded.promise]))));
      this.#silentCalls = 0;
      return answer;
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      const durationMs = this.#clock.monotonic() - startedAt;
      throw await this.#toFailure(error, durationMs >= total_ms ? total_ms : silence_ms);
    } finally {
      this.#runningCount -= 1;
      if (memory) this.#memories.delete(memory);
      // Delayed, because closing drops unsent data, and the server should receive the cancellation.
      if (!this.#isOpen && this.#runningCount === 0) this.#clock.after(CLOSE_TIMEOUT_MS, () => void this.close());
    }
  }

  /** Converts an error, and marks the connection as closed when it is broken, even if its transport still reports it as open. */
  async #toFailure(error: unknown, limit_ms: number): Promise<McpError> {
    const hadSession = this.#transport.sessionId !== undefined;
    const context = { hadSession, limit_ms, hide: this.#hide };
    const failure = toMcpError(error, await waitForReason(this.#clock, this.#transport), context);
    if (failure.kind === "silent") this.#silentCalls += 1;
    if (failure.kind === "lost" || failure.kind === "broken" || this.#silentCalls >= MAX_SILENT_CALLS)
      this.#isOpen = false;
    return failure;
  }

  async close(): Promise<void> {
    this.#isOpen = false;
    await this.#client.close().catch(() => {});
  }
}

/** The memory of the call that the current request belongs to. */
const callMemory = new AsyncLocalStorage<AnswerMemory | undefined>();

/**
 * Returns a function that waits for the memory of a large answer. It uses the memory of the request's call, or of any running call, because
 * a server can answer a request in the stream of another.
 */
const makeReserve = (memories: ReadonlySet<AnswerMemory>): ReserveMemory => {
  const own = callMemory.getStore();
  return async (onLate) => {
    const running = own && memories.has(own) ? [own] : [...memories].toReversed();
    const memory = running.find(({ isReserved }) => !isReserved) ?? running[0];
    // Fails if the call was interrupted. The answer can still be that of another call.
    const markRead = await memory?.reserve(onLate).catch(() => undefined);
    return markRead ?? (() => {});
  };
};

/** How long a failed connection stays open for its last notification. */
const CLOSE_TIMEOUT_MS = 250;
/** After the end of its stream, an answer may still arrive within this time. */
const STREAM_END_TIMEOUT_MS = 100;
const STREAM_ENDED = "the connection was closed before it answered";

const makeClient = async (): Promise<Client> => {
  const { Client, ProtocolError } = await import("@modelcontextprotocol/client");
  // With TRUST_ALL, output schemas of the server are not compiled or run here.
  const client = new Client(
    { name: "slipway", version: VERSION },
    // `listChanged` opens the stream of changes if the newer protocol requires one.
    {
      capabilities: {},
      jsonSchemaValidator: TRUST_ALL,
      listChanged: { tools: { autoRefresh: false, onChanged: () => {} } },
    },
  );
  // A server can request a capability that was not offered. Its tools can show the error that it gets.
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

/** `reason` returns why the transport has ended, if it is known. */
type WithReason = { readonly reason?: () => Promise<string | undefined> };

/** How long to wait until a program that ends has reported why. */
const REASON_TIMEOUT_MS = 1_000;

const waitForReason = async (
  clock: Clock,
  transport: (Transport & WithReason) | undefined,
): Promise<string | undefined> =>
  transport?.reason && Promise.race([transport.reason(), pause(clock, REASON_TIMEOUT_MS).then(() => undefined)]);

const TRUST_ALL: jsonSchemaValidator = {
  getValidator:
    <T>(): JsonSchemaValidator<T> =>
    (input) => ({ valid: true, data: input as T, errorMessage: undefined }),
};

/** Resolves with the result of `work`, or rejects with the signal's reason without waiting for `work`. Some transports react late. */
export const raceAbort = <T>(signal: AbortSignal, work: Promise<T>): Promise<T> => {
  const { promise, reject } = Promise.withResolvers<never>();
  const onAbort = (): void => reject(signal.reason);
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort, { once: true });
  work.catch(() => {});
  return Promise.race([work, promise]).finally(() => signal.removeEventListener("abort", onAbort));
};
