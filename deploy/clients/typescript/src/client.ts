// The client: a method for each operation of the API, and streams that resume where they were after a connection is lost.
import { SlipwayError } from "./error.js";
import { ConnectionLost, readEvents } from "./events.js";
import { OPERATIONS, type Streams } from "./operations.js";
import { canRetry, getRetryDelay, pause, type RetryOptions } from "./retry.js";
import type { components, operations } from "./schema.js";

/** The shapes of the API by name, such as `Schemas["Workspace"]`. */
export type Schemas = components["schemas"];
/** The names of the operations, such as `createWorkspace`. */
export type Operation = keyof typeof OPERATIONS & keyof operations;

type ParametersOf<O extends Operation> = Pick<
  operations[O]["parameters"],
  keyof operations[O]["parameters"] & ("path" | "query" | "header")
>;
type BodyOf<O extends Operation> = operations[O] extends { requestBody: { content: infer C } }
  ? { body: C[keyof C] }
  : operations[O] extends { requestBody?: { content: infer C } }
    ? unknown extends C
      ? { body?: undefined }
      : { body?: C[keyof C] }
    : { body?: undefined };

export interface CallOptions {
  /** Aborts the request and its retries. */
  signal?: AbortSignal;
  /** For operations that accept one: the server executes requests with the same key once. Generated for each call by default. */
  idempotencyKey?: string;
}

/** The parameters and the body of an operation. */
export type RequestOf<O extends Operation> = ParametersOf<O> & BodyOf<O> & CallOptions;

type Success = 200 | 201 | 202 | 204 | 206;
type ContentOf<R> = R extends { content: infer C } ? ([C] extends [never] ? undefined : C[keyof C]) : undefined;
/** The response of an operation. */
export type ResultOf<O extends Operation> = O extends keyof Streams
  ? AsyncGenerator<Streams[O], void>
  : Promise<
      {
        [S in keyof operations[O]["responses"] & Success]: ContentOf<operations[O]["responses"][S]>;
      }[keyof operations[O]["responses"] & Success]
    >;

/** The request can be omitted if it has no required members. */
type Method<O extends Operation> =
  Record<never, never> extends RequestOf<O>
    ? (request?: RequestOf<O>) => ResultOf<O>
    : (request: RequestOf<O>) => ResultOf<O>;
type Methods = { [O in Operation]: Method<O> };

export interface SlipwayOptions extends RetryOptions {
  /** The server's URL, such as `https://slipway.example.com`. */
  url: string | URL;
  /** An API token. Without it, only public operations work. */
  token?: string;
  /** Headers sent with every request, such as those a proxy requires. */
  headers?: Readonly<Record<string, string>>;
  /** Timeout of one attempt; 60,000 by default. Does not apply to streams. */
  timeoutMs?: number;
  /** How long a stream tries to reconnect before it fails; five minutes by default. */
  reconnectMs?: number;
  /** Replaces the runtime's `fetch`. */
  fetch?: typeof fetch;
}

/** A request as the runtime sees it; the methods have the exact types. */
interface UntypedRequest extends CallOptions {
  path?: Record<string, unknown>;
  query?: Record<string, unknown>;
  header?: Record<string, unknown>;
  body?: unknown;
}

interface OperationInfo {
  readonly method: string;
  readonly path: string;
  /** The content type of a body that does not have one itself. */
  readonly body?: string;
  /** Accepts an `Idempotency-Key`. */
  readonly hasKey?: true;
  readonly isStream?: true;
}

/** Where to start in a log, and when to stop. */
export interface LogOptions {
  /** Only lines with greater IDs. */
  after?: number;
  signal?: AbortSignal;
}

const TOKEN = "Service-Session-Token";
const KEY = "Idempotency-Key";
/** A connection that lasted this long was stable: the count of failures starts again. */
const STEADY_MS = 5_000;

/** A client for one server, with one token. Each operation of the API is a method of the same name. */
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: the methods are defined from the table of operations.
export class Slipway {
  readonly url: URL;
  readonly #token: string | undefined;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #retries: number;
  readonly #maxPauseMs: number;
  readonly #timeoutMs: number;
  readonly #reconnectMs: number;
  readonly #fetch: typeof fetch;

  constructor(options: SlipwayOptions) {
    this.url = new URL(options.url);
    this.#token = options.token;
    this.#headers = options.headers ?? {};
    this.#retries = options.retries ?? 4;
    this.#maxPauseMs = options.maxPauseMs ?? 60_000;
    this.#timeoutMs = options.timeoutMs ?? 60_000;
    this.#reconnectMs = options.reconnectMs ?? 5 * 60_000;
    this.#fetch = options.fetch ?? ((input, init) => fetch(input, init));
  }

  /**
   * Yields the events of a chat: first the messages after `after_id` and the current state, then every change. After a lost connection, it
   * resumes after the last message. If that message was removed meanwhile, it yields `history_reset` and then all messages. The parts
   * of an unfinished answer are repeated after `preview_reset`.
   */
  async *followChat(
    chat: string,
    { after_id = 0, signal }: { after_id?: number; signal?: AbortSignal } = {},
  ): AsyncGenerator<Schemas["ChatEvent"], void> {
    let last = after_id;
    const due: Schemas["ChatEvent"][] = [];
    // Checked once the stream is open: the stream reports later removals itself.
    const isCurrent = async (): Promise<boolean> => {
      due.splice(0, due.length, { type: "preview_reset", chat_id: chat });
      if (last === 0) return true;
      const query = { before_id: last + 1, limit: 1 };
      const { messages } = await this.listMessages({ path: { chat }, query, ...(signal ? { signal } : {}) });
      if (messages[0]?.id === last) return true;
      last = 0;
      return false;
    };
    let known = after_id;
    const request = (): UntypedRequest => ({ path: { chat }, query: { after_id: last } });
    for await (const events of this.#events("streamChat", request, signal, isCurrent)) {
      if (last < known) yield { type: "history_reset", chat_id: chat };
      yield* due.splice(0);
      for (const event of events as Schemas["ChatEvent"][]) {
        if (event.type === "message") last = Math.max(last, event.message.id);
        if (event.type === "history_reset") last = 0;
        yield event;
      }
      known = last;
    }
  }

  /** Yields the lines of a build's log after `after`, including new ones, each once; returns when the build has ended. */
  followBuildLog(build: string, options: LogOptions = {}): AsyncGenerator<Schemas["ProvisionerJobLog"], void> {
    return this.#followLog("listBuildLogs", { workspacebuild: build }, options);
  }

  /** Yields the lines of an import's log, like `followBuildLog`. */
  followTemplateVersionLog(
    version: string,
    options: LogOptions = {},
  ): AsyncGenerator<Schemas["ProvisionerJobLog"], void> {
    return this.#followLog("listTemplateVersionLogs", { templateversion: version }, options);
  }

  async *#followLog(
    operation: Operation,
    path: Record<string, string>,
    { after = 0, signal }: LogOptions,
  ): AsyncGenerator<Schemas["ProvisionerJobLog"], void> {
    let last = after;
    const request = (): UntypedRequest => ({ path, query: { follow: true, after: last } });
    for await (const data of this.#events(operation, request, signal)) {
      const line = data as Schemas["ProvisionerJobLog"];
      last = line.id;
      yield line;
    }
  }

  /**
   * Yields the content of each `data` event of a stream, reconnecting as needed, until the server sends `end`. `isCurrent` is called when a
   * later connection is open; if it returns false, the client connects again with a new `request`.
   */
  async *#events(
    operation: Operation,
    request: () => UntypedRequest,
    signal: AbortSignal | undefined,
    isCurrent?: () => Promise<boolean>,
  ): AsyncGenerator<unknown, void> {
    let failures = 0;
    let lostAt: number | undefined;
    for (let isFirst = true; ; isFirst = false) {
      const stop = new AbortController();
      const openedAt = Date.now();
      let asked: number | undefined;
      try {
        const response = await this.#send(operation, request(), join(signal, stop.signal), isFirst ? this.#retries : 0);
        if (!isFirst && isCurrent && !(await isCurrent())) continue;
        for await (const { event, data } of readEvents(response.body as ReadableStream<Uint8Array>)) {
          lostAt = undefined;
          if (event === "end") return;
          if (event === "data") yield JSON.parse(data);
        }
      } catch (error) {
        signal?.throwIfAborted();
        const isRefused = error instanceof SlipwayError && (isFirst || !canRetry(error, true));
        if (isRefused || !(error instanceof SlipwayError || error instanceof ConnectionLost)) throw error;
        lostAt ??= Date.now();
        if (Date.now() - lostAt > this.#reconnectMs)
          throw error instanceof SlipwayError ? error : SlipwayError.unreachable(this.url, error);
        if (error instanceof SlipwayError) asked = error.retryAfterMs;
      } finally {
        stop.abort();
      }
      if (Date.now() - openedAt > STEADY_MS) failures = 0;
      await pause(Math.min(getRetryDelay(failures, asked), this.#maxPauseMs), signal);
      failures += 1;
    }
  }

  /** Calls an operation and returns its response: JSON, text, or a Blob. */
  async #call(operation: Operation, request: UntypedRequest): Promise<unknown> {
    const response = await this.#send(operation, request, request.signal, this.#retries);
    const type = response.headers.get("content-type") ?? "";
    if (response.status === 204 || (type === "" && response.headers.get("content-length") === "0")) return undefined;
    if (/^application\/(\w+\+)?json/.test(type)) {
      const text = await response.text();
      return text === "" ? undefined : JSON.parse(text);
    }
    return type.startsWith("text/") ? response.text() : response.blob();
  }

  /** Sends a request, with retries, until it succeeds. Rejects with SlipwayError. */
  async #send(
    operation: Operation,
    request: UntypedRequest,
    signal: AbortSignal | undefined,
    retries: number,
  ): Promise<Response> {
    const described: OperationInfo = OPERATIONS[operation];
    const url = toUrl(this.url, described.path, request);
    const init = this.#toInit(described, request);
    const isRepeatable = described.hasKey === true || !["POST", "PATCH"].includes(described.method);
    for (let attempt = 0; ; attempt++) {
      let failure: SlipwayError;
      try {
        const response = await this.#try(
          url,
          init,
          signal,
          described.isStream === true || request.query?.follow === true,
        );
        if (response.ok) return response;
        failure = await SlipwayError.read(response);
      } catch (error) {
        signal?.throwIfAborted();
        failure = SlipwayError.unreachable(this.url, error);
      }
      const ms = getRetryDelay(attempt, failure.retryAfterMs);
      if (attempt >= retries || ms > this.#maxPauseMs || !canRetry(failure, isRepeatable)) throw failure;
      await pause(ms, signal);
    }
  }

  /** Makes one attempt. Reads the whole response, unless it is a stream: a connection that breaks in the middle is a failed attempt. */
  async #try(url: URL, init: RequestInit, signal: AbortSignal | undefined, isStream: boolean): Promise<Response> {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(new Error(`no answer within ${this.#timeoutMs} ms`)), this.#timeoutMs);
    try {
      const response = await this.#fetch(url, { ...init, signal: join(signal, late.signal) });
      if (isStream && response.ok) return response;
      const { status, statusText, headers } = response;
      const body = await response.arrayBuffer();
      return new Response([204, 205, 304].includes(status) ? null : body, { status, statusText, headers });
    } finally {
      clearTimeout(timer);
    }
  }

  #toInit({ method, body: type, hasKey, isStream }: OperationInfo, request: UntypedRequest): RequestInit {
    const headers = new Headers(this.#headers);
    if (this.#token !== undefined) headers.set(TOKEN, this.#token);
    for (const [name, value] of Object.entries(request.header ?? {})) {
      if (value !== undefined) headers.set(name, String(value));
    }
    if (hasKey && !headers.has(KEY)) headers.set(KEY, request.idempotencyKey ?? crypto.randomUUID());
    if (isStream || request.query?.follow === true) headers.set("accept", "text/event-stream");
    const { body } = request;
    // A redirect to another host would receive the token.
    if (body === undefined) return { method, headers, redirect: "manual" };
    const isRaw = body instanceof Blob || type !== "application/json";
    const itself = body instanceof Blob ? body.type : "";
    headers.set("content-type", itself || (type ?? "application/octet-stream"));
    return { method, headers, redirect: "manual", body: isRaw ? (body as BodyInit) : JSON.stringify(body) };
  }

  static {
    for (const [name, { isStream }] of Object.entries(OPERATIONS as Record<string, OperationInfo>)) {
      const operation = name as Operation;
      const value = isStream
        ? function (this: Slipway, request: UntypedRequest = {}) {
            return this.#events(operation, () => request, request.signal);
          }
        : function (this: Slipway, request: UntypedRequest = {}) {
            return this.#call(operation, request);
          };
      Object.defineProperty(Slipway.prototype, name, { value, writable: true, configurable: true });
    }
  }
}

export interface Slipway extends Methods {}

/** Returns a signal that aborts with either one. */
const join = (one: AbortSignal | undefined, other: AbortSignal): AbortSignal =>
  one ? AbortSignal.any([one, other]) : other;

const toUrl = (base: URL, path: string, request: UntypedRequest): URL => {
  const filled = path.replace(/\{(\w+)\}/g, (_whole, name: string) => {
    const value = request.path?.[name];
    if (value === undefined || value === null || value === "")
      throw new TypeError(`"${name}" is missing in the path ${path}`);
    return encodeURIComponent(String(value));
  });
  // The server's URL may have a path.
  const url = new URL(base.pathname.replace(/\/+$/, "") + filled, base);
  for (const [name, value] of Object.entries(request.query ?? {})) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== null) url.searchParams.append(name, String(one));
    }
  }
  return url;
};
