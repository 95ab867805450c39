// The client: a method for each operation of the API, and streams that go on where they were when a connection is lost.
import { SlipwayError } from "./error.js";
import { ConnectionLost, readEvents } from "./events.js";
import { OPERATIONS, type Streams } from "./operations.js";
import { mayRetry, pause, pauseBefore, type RetryOptions } from "./retry.js";
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
  /** Ends the request, its retries and its pauses. */
  signal?: AbortSignal;
  /** Where the operation takes one: the same for what is the same request. Made up for each call unless given. */
  idempotencyKey?: string;
}

/** What an operation is given. */
export type RequestOf<O extends Operation> = ParametersOf<O> & BodyOf<O> & CallOptions;

type Success = 200 | 201 | 202 | 204 | 206;
type ContentOf<R> = R extends { content: infer C } ? ([C] extends [never] ? undefined : C[keyof C]) : undefined;
/** What an operation answers. */
export type ResultOf<O extends Operation> = O extends keyof Streams
  ? AsyncGenerator<Streams[O], void>
  : Promise<
      {
        [S in keyof operations[O]["responses"] & Success]: ContentOf<operations[O]["responses"][S]>;
      }[keyof operations[O]["responses"] & Success]
    >;

/** The request may be left away where nothing of it is required. */
type Method<O extends Operation> =
  Record<never, never> extends RequestOf<O>
    ? (request?: RequestOf<O>) => ResultOf<O>
    : (request: RequestOf<O>) => ResultOf<O>;
type Methods = { [O in Operation]: Method<O> };

export interface SlipwayOptions extends RetryOptions {
  /** Where the server is, such as `https://slipway.example.com`. */
  url: string | URL;
  /** An API token. Without one only public operations answer. */
  token?: string;
  /** Headers of every request, such as those of a proxy in front. */
  headers?: Readonly<Record<string, string>>;
  /** How long one try may take; 60,000 unless given. Streams have no end of their own. */
  timeoutMs?: number;
  /** How long a stream tries to connect again before it fails; five minutes unless given. */
  reconnectMs?: number;
  /** In place of the runtime's own `fetch`. */
  fetch?: typeof fetch;
}

/** What the runtime knows of a request; the methods have the exact types. */
interface AnyRequest extends CallOptions {
  path?: Record<string, unknown>;
  query?: Record<string, unknown>;
  header?: Record<string, unknown>;
  body?: unknown;
}

interface Described {
  readonly method: string;
  readonly path: string;
  /** The type of a body that says none itself. */
  readonly body?: string;
  /** Takes an `Idempotency-Key`. */
  readonly hasKey?: true;
  readonly isStream?: true;
}

/** Where to begin in a log, and when to stop. */
export interface LogOptions {
  /** Only lines with greater ids. */
  after?: number;
  signal?: AbortSignal;
}

const TOKEN = "Service-Session-Token";
const KEY = "Idempotency-Key";
/** A connection that lasted this long counts as a good one: the next failure is the first again. */
const STEADY_MS = 5_000;

/** A server and its caller. Each operation of the API is a method of the same name. */
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
   * Yields the events of a chat: first the messages after `after_id` and the state as it is, then every change. When the connection is lost it
   * goes on after the last message. If that message was removed in the meantime, `history_reset` comes first and then all messages. Parts
   * of an unfinished answer begin again after `preview_reset`.
   */
  async *followChat(
    chat: string,
    { after_id = 0, signal }: { after_id?: number; signal?: AbortSignal } = {},
  ): AsyncGenerator<Schemas["ChatEvent"], void> {
    let last = after_id;
    const due: Schemas["ChatEvent"][] = [];
    // Asked once the stream is open: what is removed later, the stream says itself.
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
    const request = (): AnyRequest => ({ path: { chat }, query: { after_id: last } });
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

  /** Yields the lines of a build's log, those after `after` and then what comes, each once; returns when the build has ended. */
  followBuildLog(build: string, options: LogOptions = {}): AsyncGenerator<Schemas["ProvisionerJobLog"], void> {
    return this.#followLog("listBuildLogs", { workspacebuild: build }, options);
  }

  /** Yields the lines of an import's log, as `followBuildLog` does those of a build. */
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
    const request = (): AnyRequest => ({ path, query: { follow: true, after: last } });
    for await (const data of this.#events(operation, request, signal)) {
      const line = data as Schemas["ProvisionerJobLog"];
      last = line.id;
      yield line;
    }
  }

  /**
   * Yields what each `data` event of a stream holds, over as many connections as it takes, until the server sends `end`. `isCurrent` is asked when a
   * later connection is open; where it says no, the next one begins with another `request`.
   */
  async *#events(
    operation: Operation,
    request: () => AnyRequest,
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
        const isRefused = error instanceof SlipwayError && (isFirst || !mayRetry(error, true));
        if (isRefused || !(error instanceof SlipwayError || error instanceof ConnectionLost)) throw error;
        lostAt ??= Date.now();
        if (Date.now() - lostAt > this.#reconnectMs)
          throw error instanceof SlipwayError ? error : SlipwayError.unreachable(this.url, error);
        if (error instanceof SlipwayError) asked = error.retryAfterMs;
      } finally {
        stop.abort();
      }
      if (Date.now() - openedAt > STEADY_MS) failures = 0;
      await pause(Math.min(pauseBefore(failures, asked), this.#maxPauseMs), signal);
      failures += 1;
    }
  }

  /** Calls an operation and reads its answer: JSON, text, or a Blob. */
  async #call(operation: Operation, request: AnyRequest): Promise<unknown> {
    const response = await this.#send(operation, request, request.signal, this.#retries);
    const type = response.headers.get("content-type") ?? "";
    if (response.status === 204 || (type === "" && response.headers.get("content-length") === "0")) return undefined;
    if (/^application\/(\w+\+)?json/.test(type)) {
      const text = await response.text();
      return text === "" ? undefined : JSON.parse(text);
    }
    return type.startsWith("text/") ? response.text() : response.blob();
  }

  /** Sends a request until it is answered well. Rejects with SlipwayError. */
  async #send(
    operation: Operation,
    request: AnyRequest,
    signal: AbortSignal | undefined,
    retries: number,
  ): Promise<Response> {
    const described: Described = OPERATIONS[operation];
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
      const ms = pauseBefore(attempt, failure.retryAfterMs);
      if (attempt >= retries || ms > this.#maxPauseMs || !mayRetry(failure, isRepeatable)) throw failure;
      await pause(ms, signal);
    }
  }

  /** One try. The answer is read to its end, unless it is a stream: a connection that breaks in the middle is a failed try. */
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

  #toInit({ method, body: type, hasKey, isStream }: Described, request: AnyRequest): RequestInit {
    const headers = new Headers(this.#headers);
    if (this.#token !== undefined) headers.set(TOKEN, this.#token);
    for (const [name, value] of Object.entries(request.header ?? {})) {
      if (value !== undefined) headers.set(name, String(value));
    }
    if (hasKey && !headers.has(KEY)) headers.set(KEY, request.idempotencyKey ?? crypto.randomUUID());
    if (isStream || request.query?.follow === true) headers.set("accept", "text/event-stream");
    const { body } = request;
    // A redirect elsewhere would take the token along.
    if (body === undefined) return { method, headers, redirect: "manual" };
    const isRaw = body instanceof Blob || type !== "application/json";
    const itself = body instanceof Blob ? body.type : "";
    headers.set("content-type", itself || (type ?? "application/octet-stream"));
    return { method, headers, redirect: "manual", body: isRaw ? (body as BodyInit) : JSON.stringify(body) };
  }

  static {
    for (const [name, { isStream }] of Object.entries(OPERATIONS as Record<string, Described>)) {
      const operation = name as Operation;
      const value = isStream
        ? function (this: Slipway, request: AnyRequest = {}) {
            return this.#events(operation, () => request, request.signal);
          }
        : function (this: Slipway, request: AnyRequest = {}) {
            return this.#call(operation, request);
          };
      Object.defineProperty(Slipway.prototype, name, { value, writable: true, configurable: true });
    }
  }
}

export interface Slipway extends Methods {}

/** A signal that fires with either one. */
const join = (one: AbortSignal | undefined, other: AbortSignal): AbortSignal =>
  one ? AbortSignal.any([one, other]) : other;

const toUrl = (base: URL, path: string, request: AnyRequest): URL => {
  const filled = path.replace(/\{(\w+)\}/g, (_whole, name: string) => {
    const value = request.path?.[name];
    if (value === undefined || value === null || value === "")
      throw new TypeError(`"${name}" is missing in the path ${path}`);
    return encodeURIComponent(String(value));
  });
  // The server may stand below a path of its own.
  const url = new URL(base.pathname.replace(/\/+$/, "") + filled, base);
  for (const [name, value] of Object.entries(request.query ?? {})) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== null) url.searchParams.append(name, String(one));
    }
  }
  return url;
};
