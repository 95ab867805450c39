// Requests to the HTTP API of an agent (port 4), through whatever dialer there is. Keeps a few idle connections for each agent, so that
// the next request needs no new stream (rule TN-9). Every answer is a stranger's: bounded, and never trusted.
import type { Clock, Timer } from "#base/clock.ts";
import { AGENT_PORT, type AgentDialer } from "./agent-dialer.ts";
import { HttpConnection, type HttpRequest, type HttpResponse, type Upgrade } from "./http-connection.ts";
import { WireError } from "./wire-error.ts";

const IDLE_MS = 30_000;
const MOST_IDLE = 4;

export type AgentRequest = Omit<HttpRequest, "body"> & { body?: HttpRequest["body"]; json?: unknown };

type Idle = { connection: HttpConnection; timer: Timer };

export class AgentHttp {
  readonly #dialer: AgentDialer;
  readonly #clock: Clock;
  readonly #idle = new Map<string, Idle[]>();

  constructor(dialer: AgentDialer, clock: Clock) {
    this.#dialer = dialer;
    this.#clock = clock;
  }

  /**
   * Sends a request and answers once the head is there. Errors as `AgentDialer.dial`, and WireError when the connection breaks. The
   * body must be read or discarded.
   */
  async request(agent_id: string, request: AgentRequest): Promise<HttpResponse> {
    const asked = prepared(request);
    const known = this.#take(agent_id);
    const connection = known ?? (await this.#dial(agent_id, asked.signal));
    try {
      return this.#watched(agent_id, connection, await connection.request(asked));
    } catch (error) {
      // An idle connection may have died unseen. What changes nothing is asked again on a fresh one.
      const again = known && asked.method === "GET" && !asked.signal?.aborted && isGone(error);
      if (!again) throw error;
      const fresh = await this.#dial(agent_id, asked.signal);
      return this.#watched(agent_id, fresh, await fresh.request(asked));
    }
  }

  /** Asks for another protocol, on a connection of its own. */
  async upgrade(agent_id: string, request: AgentRequest): Promise<Upgrade> {
    const connection = await this.#dial(agent_id, request.signal);
    return connection.upgrade(prepared(request));
  }

  async #dial(agent_id: string, signal: AbortSignal | undefined): Promise<HttpConnection> {
    return new HttpConnection(await this.#dialer.dial(agent_id, AGENT_PORT.http, signal));
  }

  #take(agent_id: string): HttpConnection | undefined {
    const idle = this.#idle.get(agent_id);
    const found = idle?.pop();
    if (idle?.length === 0) this.#idle.delete(agent_id);
    found?.timer.cancel();
    return found?.connection;
  }

  /** The same answer; when its body was read to the end the connection goes back to the idle ones. */
  #watched(agent_id: string, connection: HttpConnection, response: HttpResponse): HttpResponse {
    if (connection.reusable) this.#keep(agent_id, connection);
    else response.whenRead(() => this.#keep(agent_id, connection));
    return response;
  }

  #keep(agent_id: string, connection: HttpConnection): void {
    if (!connection.reusable) return;
    const idle = this.#idle.get(agent_id) ?? [];
    if (idle.length >= MOST_IDLE) {
      connection.close();
      return;
    }
    const drop = (): void => {
      const at = idle.indexOf(entry);
      if (at < 0) return;
      idle.splice(at, 1);
      if (idle.length === 0 && this.#idle.get(agent_id) === idle) this.#idle.delete(agent_id);
      entry.timer.cancel();
      connection.close();
    };
    const entry: Idle = { connection, timer: this.#clock.after(IDLE_MS, drop) };
    idle.push(entry);
    this.#idle.set(agent_id, idle);
    void connection.lost().then(drop);
  }
}

const prepared = ({ json, ...request }: AgentRequest): HttpRequest =>
  json === undefined
    ? request
    : {
        ...request,
        headers: [...(request.headers ?? []), ["content-type", "application/json"]],
        body: new TextEncoder().encode(JSON.stringify(json)),
      };

const isGone = (error: unknown): boolean =>
  error instanceof WireError && (error.failure === "closed" || error.failure === "reset");
