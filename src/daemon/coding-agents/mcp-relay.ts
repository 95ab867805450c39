// The MCP server for coding agents, on the loopback interface. An agent's request waits here until the Slipway server has read and answered
// it, so the tools and their secrets stay on that server. An agent authenticates with the token that the Slipway server gave its program.
import type { Clock, Timer } from "#base/clock.ts";
import { isSameDigest, sha256 } from "#base/ids.ts";
import type { AgentMcpRequest } from "#schema/agents/agent-program.ts";

const MAX_MESSAGE_BYTES = 4 * 1024 * 1024;
const MAX_WAITING = 64;
/** Maximum number of characters of requests in one response to the server. */
const MAX_RESPONSE_CHARS = 4 * 1024 * 1024;
/** Clients close a stream that stays silent for too long. */
const PING_INTERVAL_MS = 15_000;

type PendingRequest = AgentMcpRequest & { answer(message: string): void };

/** The MCP requests of one program. */
export class McpRequests {
  readonly #digest: string;
  readonly #waiting = new Map<number, PendingRequest>();
  readonly #onNews: () => void;
  #count = 0;

  constructor(token: string, onNews: () => void) {
    this.#digest = sha256(token);
    this.#onNews = onNews;
  }

  isToken(token: string): boolean {
    return isSameDigest(sha256(token), this.#digest);
  }

  /** The number of the newest request. */
  get newest(): number {
    return this.#count;
  }

  get isFull(): boolean {
    return this.#waiting.size >= MAX_WAITING;
  }

  /** Adds a request. Returns a function that forgets it, for an agent that no longer waits. */
  add(message: string, answer: (message: string) => void): () => void {
    this.#count += 1;
    const number = this.#count;
    this.#waiting.set(number, { number, message, answer });
    this.#onNews();
    return () => this.#waiting.delete(number);
  }

  /** Returns the requests after this number, as many as fit into a response; the next response has the remaining ones. */
  listAfter(number: number): AgentMcpRequest[] {
    const requests: AgentMcpRequest[] = [];
    let size = 0;
    for (const { number: otherNumber, message } of this.#waiting.values()) {
      if (otherNumber <= number) continue;
      size += message.length;
      if (requests.length > 0 && size > MAX_RESPONSE_CHARS) break;
      requests.push({ number: otherNumber, message });
    }
    return requests;
  }

  /** Answers a request. Does nothing if it was already answered or forgotten. */
  answer(number: number, message: string): void {
    const waiting = this.#waiting.get(number);
    this.#waiting.delete(number);
    waiting?.answer(message);
  }
}

/** Starts to listen when the first program needs the relay, and listens until the daemon ends. */
export class McpRelay {
  readonly #clock: Clock;
  readonly #find: (id: string) => McpRequests | undefined;
  readonly #hidePort: (port: number) => void;
  #server: ReturnType<McpRelay["listen"]> | undefined;

  constructor(clock: Clock, find: (id: string) => McpRequests | undefined, hidePort: (port: number) => void) {
    this.#clock = clock;
    this.#find = find;
    this.#hidePort = hidePort;
  }

  /** Returns the address of the relay for a program. */
  getUrl(id: string): string {
    this.#server ??= this.listen();
    return `http://127.0.0.1:${this.#server.port}/${id}`;
  }

  private listen() {
    const server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      maxRequestBodySize: MAX_MESSAGE_BYTES,
      // Tool calls may wait for a person.
      idleTimeout: 0,
      fetch: (request) => this.#handle(request),
    });
    // The server must not keep an otherwise idle daemon alive.
    server.unref();
    this.#hidePort(server.port ?? 0);
    return server;
  }

  async #handle(request: Request): Promise<Response> {
    const requests = this.#find(new URL(request.url).pathname.slice(1));
    const [, token = ""] = /^Bearer (\S+)$/.exec(request.headers.get("authorization") ?? "") ?? [];
    // A web page in a browser on this machine cannot know the token, but must not learn that this server exists either.
    if (!requests?.isToken(token) || request.headers.has("origin")) return new Response(null, { status: 401 });
    if (request.method === "DELETE") return new Response(null, { status: 200 });
    if (request.method !== "POST") return new Response(null, { status: 405, headers: { allow: "POST, DELETE" } });
    const message = await request.text();
    const kind = parseKind(message);
    if (kind === "invalid") return new Response(null, { status: 400 });
    if (kind === "notification") return new Response(null, { status: 202 });
    if (requests.isFull) return new Response(null, { status: 429 });
    return respondWithEvents(this.#clock, requests, message);
  }
}

const parseKind = (message: string): "request" | "notification" | "invalid" => {
  try {
    const { method, id } = JSON.parse(message) as { method?: unknown; id?: unknown };
    if (typeof method !== "string" && id === undefined) return "invalid";
    return typeof method === "string" && (typeof id === "string" || typeof id === "number")
      ? "request"
      : "notification";
  } catch {
    return "invalid";
  }
};

/** Responds with an event stream: headers are sent immediately, and pings keep it alive while a person decides. */
const respondWithEvents = (clock: Clock, requests: McpRequests, message: string): Response => {
  const encoder = new TextEncoder();
  let unsubscribe = (): unknown => undefined;
  let pings: Timer | undefined;
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      pings = clock.every(PING_INTERVAL_MS, () => controller.enqueue(encoder.encode(": waiting\n\n")));
      controller.enqueue(encoder.encode(": taken\n\n"));
      unsubscribe = requests.add(message, (answer) => {
        pings?.cancel();
        controller.enqueue(encoder.encode(`event: message\ndata: ${answer}\n\n`));
        controller.close();
      });
    },
    cancel: () => {
      pings?.cancel();
      unsubscribe();
    },
  });
  return new Response(body, { headers: { "content-type": "text/event-stream", "cache-control": "no-store" } });
};
