// Sends requests to an agent's HTTP API (port 4) or to a program of its workspace, over any dialer. Keeps a few idle connections per agent,
// so that the next request needs no new stream (rule TN-9). Responses are untrusted: limited in size and validated.
import type { Clock, Timer } from "#base/clock.ts";
import { AGENT_PORT, type AgentDialer } from "./agent-dialer.ts";
import { HttpConnection, type HttpRequest, type HttpResponse, type Upgrade } from "./http-connection.ts";
import { WireError } from "./wire-error.ts";

const IDLE_TIMEOUT_MS = 30_000;
const MAX_IDLE_CONNECTIONS = 4;

export type AgentRequest = Omit<HttpRequest, "body"> & {
  body?: HttpRequest["body"];
  json?: unknown;
  /** Defaults to the agent's own API. */
  port?: number;
  /** The port uses TLS. */
  tls?: boolean;
};

/** Observes and wraps the requests. */
export type RequestHooks = {
  /** Called before a request starts. */
  begin(): void;
  /** Runs a request, which may take as long as the workspace program that answers it. */
  wait<T>(request: () => Promise<T>): Promise<T>;
};

const NOOP_HOOKS: RequestHooks = { begin: () => {}, wait: (request) => request() };

type IdleConnection = { connection: HttpConnection; timer: Timer };

export class AgentHttp {
  readonly #dialer: AgentDialer;
  readonly #clock: Clock;
  readonly #hooks: RequestHooks;
  readonly #idle = new Map<string, IdleConnection[]>();

  constructor(dialer: AgentDialer, clock: Clock, hooks = NOOP_HOOKS) {
    this.#dialer = dialer;
    this.#clock = clock;
    this.#hooks = hooks;
  }

  /**
   * Sends a request and resolves when the response's head has arrived. The caller must read or discard the body. Rejects like
   * `AgentDialer.dial`, and with WireError if the connection breaks.
   */
  request(agent_id: string, request: AgentRequest): Promise<HttpResponse> {
    this.#hooks.begin();
    return this.#hooks.wait(() => this.#request(agent_id, request));
  }

  async #request(agent_id: string, request: AgentRequest): Promise<HttpResponse> {
    const httpRequest = toHttpRequest(request);
    const target = toTarget(agent_id, request);
    // An idle connection may be dead, so only safe requests without a body use one. The agent's own API keeps its connections open.
    const isSafe =
      target.port === AGENT_PORT.http || (httpRequest.body === undefined && SAFE_METHODS.has(httpRequest.method));
    const idle = isSafe ? this.#takeIdle(target.key) : undefined;
    const connection = idle ?? (await this.#dial(target, httpRequest.signal));
    try {
      return this.#reuseAfterRead(target.key, connection, await connection.request(httpRequest));
    } catch (error) {
      // An idle connection may have died unnoticed. Safe requests are retried on a new one.
      const canRetry =
        idle && SAFE_METHODS.has(httpRequest.method) && !httpRequest.signal?.aborted && isStaleConnection(error);
      if (!canRetry) throw error;
      const fresh = await this.#dial(target, httpRequest.signal);
      return this.#reuseAfterRead(target.key, fresh, await fresh.request(httpRequest));
    }
  }

  /** Requests an upgrade to another protocol, on a separate connection. */
  async upgrade(agent_id: string, request: AgentRequest): Promise<Upgrade> {
    this.#hooks.begin();
    const connection = await this.#dial(toTarget(agent_id, request), request.signal);
    return connection.upgrade(toHttpRequest(request));
  }

  async #dial({ agent_id, port, tls }: Target, signal: AbortSignal | undefined): Promise<HttpConnection> {
    return new HttpConnection(await this.#dialer.dial(agent_id, port, signal, { tls }));
  }

  #takeIdle(key: string): HttpConnection | undefined {
    const idle = this.#idle.get(key);
    const found = idle?.pop();
    if (idle?.length === 0) this.#idle.delete(key);
    found?.timer.cancel();
    return found?.connection;
  }

  /** Returns the response; when its body has been read completely, the connection becomes idle again. */
  #reuseAfterRead(key: string, connection: HttpConnection, response: HttpResponse): HttpResponse {
    if (connection.reusable) this.#addIdle(key, connection);
    else response.onRead(() => this.#addIdle(key, connection));
    return response;
  }

  #addIdle(key: string, connection: HttpConnection): void {
    if (!connection.reusable) return;
    const idle = this.#idle.get(key) ?? [];
    if (idle.length >= MAX_IDLE_CONNECTIONS) {
      connection.close();
      return;
    }
    const closeIdle = (): void => {
      const at = idle.indexOf(entry);
      if (at < 0) return;
      idle.splice(at, 1);
      if (idle.length === 0 && this.#idle.get(key) === idle) this.#idle.delete(key);
      entry.timer.cancel();
      connection.close();
    };
    const entry: IdleConnection = { connection, timer: this.#clock.after(IDLE_TIMEOUT_MS, closeIdle) };
    idle.push(entry);
    this.#idle.set(key, idle);
    void connection.waitUntilUnusable().then(closeIdle);
  }
}

const SAFE_METHODS = new Set(["GET", "HEAD"]);

/** `key` identifies the idle connections to this target. */
type Target = { agent_id: string; port: number; tls: boolean; key: string };

const toTarget = (agent_id: string, { port = AGENT_PORT.http, tls = false }: AgentRequest): Target => ({
  agent_id,
  port,
  tls,
  key: `${agent_id} ${port}${tls ? " tls" : ""}`,
});

const toHttpRequest = ({ json, port: _port, tls: _tls, ...request }: AgentRequest): HttpRequest =>
  json === undefined
    ? request
    : {
        ...request,
        headers: [...(request.headers ?? []), ["content-type", "application/json"]],
        body: new TextEncoder().encode(JSON.stringify(json)),
      };

const isStaleConnection = (error: unknown): boolean =>
  error instanceof WireError && (error.failure === "closed" || error.failure === "reset");
