// The public client of a Slipway server: typed requests, a single error class, WebSockets as async iterables. Used by the daemon, the
// command line, the benchmark and the tests; it does not depend on server code.
import type { AnswerOf, BodyOf, CallAt, Method } from "#schema/call-types.ts";
import type { Generic } from "#schema/generic.ts";
import type { Bytes, Route } from "#schema/route.ts";
import type { LoginRefused } from "#schema/users/second-factor.ts";

/** An error response of the server. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: number;
  readonly body: Generic;

  constructor(status: number, body: Generic) {
    super(body.detail ? `${body.message} ${body.detail}` : body.message);
    this.status = status;
    this.body = body;
  }
}

export type RequestOptions = { headers?: Record<string, string>; signal?: AbortSignal };

/** The type of calls outside /api/v2 and of paths built at run time. */
type UntypedCall = Route<unknown, unknown, string>;

/** The call of a literal path; `never` if the server has no such route. */
type CallFor<M extends Method, P extends string> = P extends `/api/v2${infer Below}` ? CallAt<M, Below> : UntypedCall;

/** A request body; accepts read-only data. */
type ReadonlyBody<T> = T extends Bytes
  ? T
  : T extends readonly (infer One)[]
    ? readonly ReadonlyBody<One>[]
    : T extends object
      ? { readonly [Member in keyof T]: ReadonlyBody<T[Member]> }
      : T;

/** The arguments after the path of a call without a body. If the server has no such call, no arguments are accepted. */
type OptionArgs<M extends Method, P extends string> = [CallFor<M, P>] extends [never]
  ? [unknownPath: never]
  : [options?: RequestOptions];

/** The arguments of a call with a body. */
type CallArguments<M extends Method, P extends string> = [CallFor<M, P>] extends [never]
  ? [unknownPath: never]
  : undefined extends BodyOf<CallFor<M, P>>
    ? [body?: ReadonlyBody<BodyOf<CallFor<M, P>>>, options?: RequestOptions]
    : [body: ReadonlyBody<BodyOf<CallFor<M, P>>>, options?: RequestOptions];

declare const noArgument: unique symbol;
/** Marks that no type argument was given. */
type NoArgument = { readonly [noArgument]: never };
type PathFor<T> = [T] extends [NoArgument] ? never : string;

export class Client {
  readonly url: URL;
  readonly token: string | undefined;
  /** Headers of every request in addition to the token, for example for a proxy. */
  readonly extraHeaders: Readonly<Record<string, string>>;

  /** `headers` are sent with every request. */
  constructor(url: URL | string, token?: string, headers: Readonly<Record<string, string>> = {}) {
    this.url = new URL(url);
    this.token = token;
    this.extraHeaders = headers;
  }

  /** Signs in with a password, and a code from `askCode` if one is required. Returns a client for that user. */
  async signIn(email: string, password: string, askCode?: () => Promise<string>): Promise<Client> {
    const login = this.post("/api/v2/users/login", { email, password });
    const { session_token } = await login.catch(async (error) => {
      const secondFactor = error instanceof ApiError ? (error.body as LoginRefused).second_factor : undefined;
      if (!secondFactor || !askCode) throw error;
      const body = { challenge: secondFactor.challenge, code: await askCode() };
      return this.post("/api/v2/users/login/second-factor", body);
    });
    return this.withToken(session_token);
  }

  /** The headers of every request. */
  get headers(): Record<string, string> {
    return { ...this.extraHeaders, ...(this.token === undefined ? {} : { "Service-Session-Token": this.token }) };
  }

  /** Returns a client for the same server with another token. */
  withToken(token: string | undefined): Client {
    return new Client(this.url, token, this.extraHeaders);
  }

  // The type of a literal path is that of its route: a wrong path, member or body is a compile error. For a path built at run time, a type
  // argument gives the expected type: `get<Workspace>(path)`.

  get<P extends string>(path: P, ...args: OptionArgs<"GET", P>): Promise<AnswerOf<CallFor<"GET", P>>>;
  get<T = NoArgument>(path: PathFor<T>, options?: RequestOptions): Promise<NoInfer<T>>;
  get(path: string, options?: RequestOptions): Promise<unknown> {
    return this.#json("GET", path, undefined, options);
  }
  post<P extends string>(path: P, ...args: CallArguments<"POST", P>): Promise<AnswerOf<CallFor<"POST", P>>>;
  post<T = NoArgument>(path: PathFor<T>, body?: unknown, options?: RequestOptions): Promise<NoInfer<T>>;
  post(path: string, body?: unknown, options?: RequestOptions): Promise<unknown> {
    return this.#json("POST", path, body, options);
  }
  put<P extends string>(path: P, ...args: CallArguments<"PUT", P>): Promise<AnswerOf<CallFor<"PUT", P>>>;
  put<T = NoArgument>(path: PathFor<T>, body?: unknown, options?: RequestOptions): Promise<NoInfer<T>>;
  put(path: string, body?: unknown, options?: RequestOptions): Promise<unknown> {
    return this.#json("PUT", path, body, options);
  }
  patch<P extends string>(path: P, ...args: CallArguments<"PATCH", P>): Promise<AnswerOf<CallFor<"PATCH", P>>>;
  patch<T = NoArgument>(path: PathFor<T>, body?: unknown, options?: RequestOptions): Promise<NoInfer<T>>;
  patch(path: string, body?: unknown, options?: RequestOptions): Promise<unknown> {
    return this.#json("PATCH", path, body, options);
  }
  delete<P extends string>(path: P, ...args: CallArguments<"DELETE", P>): Promise<AnswerOf<CallFor<"DELETE", P>>>;
  delete<T = NoArgument>(path: PathFor<T>, body?: unknown, options?: RequestOptions): Promise<NoInfer<T>>;
  delete(path: string, body?: unknown, options?: RequestOptions): Promise<unknown> {
    return this.#json("DELETE", path, body, options);
  }

  /** Returns the raw response, whatever its status. A body that is not text or bytes is sent as JSON. */
  fetch(method: string, path: string, body?: unknown, options: RequestOptions = {}): Promise<Response> {
    const isRaw = typeof body === "string" || body instanceof Uint8Array || body instanceof ReadableStream;
    const headers: Record<string, string> = { ...this.headers, ...options.headers };
    if (body !== undefined && !isRaw) headers["content-type"] ??= "application/json";
    return fetch(new URL(path, this.url), {
      method,
      headers,
      redirect: "manual",
      ...(body === undefined ? {} : { body: isRaw ? (body as Bun.BodyInit) : JSON.stringify(body) }),
      ...(options.signal ? { signal: options.signal } : {}),
    });
  }

  /** Opens a WebSocket. Resolves once it is open; rejects with the server's error if it is refused. */
  async socket(path: string, options: { headers?: Record<string, string> } = {}): Promise<ClientSocket> {
    const url = new URL(path, this.url);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(url, { headers: { ...this.headers, ...options.headers } } as never);
    const client = new ClientSocket(socket);
    await client.opened;
    return client;
  }

  async #json(method: Method, path: string, body: unknown, options?: RequestOptions): Promise<unknown> {
    const response = await this.fetch(method, path, body, options);
    const text = await response.text();
    if (response.ok) return text === "" ? undefined : parseAnswer(text, response.status, this.url);
    throw new ApiError(response.status, parseErrorBody(text, response.status));
  }
}

/** Throws ApiError if the response is not JSON. */
const parseAnswer = (text: string, status: number, { origin }: URL): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    const message = `The response of ${origin} is not JSON: another program or a proxy answered. Check the server's URL.`;
    throw new ApiError(status, { message });
  }
};

const parseErrorBody = (text: string, status: number): Generic => {
  try {
    const body = JSON.parse(text) as Generic;
    if (typeof body.message === "string") return body;
  } catch {
    // Not JSON: the response is from a proxy.
  }
  return { message: `The server answered ${status}.`, detail: text.slice(0, 200) };
};

/** An open WebSocket: `for await` yields each message. The loop ends when the WebSocket is closed, and `closed` has the reason. */
export class ClientSocket implements AsyncIterable<string | Uint8Array>, Disposable {
  readonly opened: Promise<void>;
  readonly closed: Promise<{ code: number; reason: string }>;
  readonly #socket: WebSocket;
  readonly #messages: (string | Uint8Array)[] = [];
  #hasEnded = false;
  #wake: (() => void) | undefined;

  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.binaryType = "arraybuffer";
    socket.onmessage = ({ data }) => {
      this.#messages.push(typeof data === "string" ? data : new Uint8Array(data as ArrayBuffer));
      this.#wake?.();
    };
    this.opened = new Promise((resolve, reject) => {
      socket.onopen = () => resolve();
      socket.onerror = (event) => reject(new Error((event as ErrorEvent).message || "the WebSocket was refused"));
    });
    this.closed = new Promise((resolve) => {
      socket.onclose = ({ code, reason }) => {
        this.#hasEnded = true;
        this.#wake?.();
        resolve({ code, reason });
      };
    });
  }

  send(data: string | Uint8Array<ArrayBuffer>): void {
    this.#socket.send(data);
  }

  close(code = 1000, reason = ""): void {
    this.#socket.close(code, reason);
  }

  [Symbol.dispose](): void {
    this.#socket.terminate();
  }

  /** Returns the next message; undefined when the socket has closed and all messages were returned. */
  async next(): Promise<string | Uint8Array | undefined> {
    while (this.#messages.length === 0) {
      if (this.#hasEnded) return undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return this.#messages.shift();
  }

  /** Returns the next message as JSON. Rejects if the socket closes first. */
  async json<T>(): Promise<T> {
    const message = await this.next();
    if (typeof message !== "string") throw new Error("the WebSocket closed or sent bytes where JSON was expected");
    return JSON.parse(message) as T;
  }

  async *[Symbol.asyncIterator](): AsyncIterator<string | Uint8Array> {
    for (;;) {
      const message = await this.next();
      if (message === undefined) return;
      yield message;
    }
  }
}
