// The HTTP transports of an MCP server. The caller chooses the `fetch`: Slipway's server can reach only allowed networks (rule MC-7), a
// workspace can reach any.
import type { Transport } from "@modelcontextprotocol/client";
import type { Clock } from "#base/clock.ts";
import { counted } from "#base/json/counted-fetch.ts";
import { parseJson } from "#base/json/read.ts";
import type { ReserveMemory } from "#base/system/answer-memory.ts";
import { McpConnection, type OpenOptions } from "./connection.ts";
import { McpError } from "./failure.ts";
import type { Fetch } from "./fetch.ts";

export type HttpTarget = {
  readonly url: URL;
  /** `sse`: the older protocol, with a stream and a URL for messages. */
  readonly kind: "http" | "sse";
  readonly headers: Readonly<Record<string, string>>;
  readonly fetch: Fetch;
};

/** Statuses with other reasons than the protocol. */
const UNRELATED_STATUSES: readonly number[] = [401, 402, 403, 407, 408, 425, 429, 451];

/**
 * Connects to the server. If it refuses the first message with a 4xx, the older protocol is tried, as the specification requires. Throws
 * McpError.
 */
export const openHttp = async (clock: Clock, target: HttpTarget, options: OpenOptions = {}): Promise<McpConnection> => {
  try {
    return await McpConnection.open(clock, (findMemory) => createHttpTransport(clock, target, findMemory), options);
  } catch (error) {
    if (target.kind === "sse" || !(error instanceof McpError) || !mayUseOlderProtocol(error)) throw error;
    const older: HttpTarget = { url: target.url, kind: "sse", headers: target.headers, fetch: target.fetch };
    return McpConnection.open(clock, (findMemory) => createHttpTransport(clock, older, findMemory), options).catch(
      () => {
        throw error;
      },
    );
  }
};

const mayUseOlderProtocol = ({ status = 0 }: McpError): boolean =>
  status >= 400 && status < 500 && !UNRELATED_STATUSES.includes(status);

/** Large enough for images and documents. The number of values is limited separately, because 16 MiB can hold five million. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

/** Returns a fetch whose answers fail before they are expensive to parse. `reserve` waits for the memory of a large answer. */
export const countedFetch =
  (clock: Clock, fetch: Fetch, reserve?: ReserveMemory): Fetch =>
  async (url, init) =>
    counted(clock, await fetch(url, init), {
      maxBytes: MAX_ANSWER_BYTES,
      reserve,
      fail: (problem) => new Error(`The answer of the server ${problem}`),
    });

/** Redirects to another origin fail, so that headers are sent only to the server's own origin. */
const createHttpTransport = async (
  clock: Clock,
  { url, kind, headers, fetch: open }: HttpTarget,
  findMemory: () => ReserveMemory,
): Promise<Transport> => {
  const fetch: Fetch = (to, init) => countedFetch(clock, open, findMemory())(to, init);
  const { SSEClientTransport, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
  const requestInit = { headers: { ...headers } };
  if (kind === "http") return new StreamableHTTPClientTransport(url, { requestInit, fetch: attributeErrors(fetch) });
  const older = new SSEClientTransport(url, { requestInit, fetch: watchSession(fetch, () => void older.close()) });
  return older;
};

/**
 * Calls `onEnd` when an event stream ends. In the older protocol, the stream is the session: the package would open another stream, while
 * messages to the old URL get no answer.
 */
const watchSession =
  (fetch: Fetch, onEnd: () => void): Fetch =>
  async (url, init) => {
    const response = await fetch(url, init);
    const { body, status, headers } = response;
    if (!body || !response.ok || !headers.get("content-type")?.startsWith("text/event-stream")) return response;
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    void body.pipeTo(writable).then(onEnd, onEnd);
    return new Response(readable, { status, headers });
  };

/** Adds the request's ID to errors without it, which are common for expired sessions. Without the ID, the call would time out. */
const attributeErrors =
  (fetch: Fetch): Fetch =>
  async (url, init) => {
    const response = await fetch(url, init);
    const id = init?.method === "POST" ? getRequestId(init.body) : undefined;
    const isJson = response.headers.get("content-type")?.includes("application/json");
    if (id === undefined || !response.ok || !isJson) return response;
    const text = await response.text();
    const { status } = response;
    const headers = { "content-type": "application/json", ...getSession(response) };
    return new Response(attributeError(text, id), { status, headers });
  };

const getSession = ({ headers }: Response): Record<string, string> => {
  const session = headers.get("mcp-session-id");
  return session === null ? {} : { "mcp-session-id": session };
};

const getRequestId = (body: unknown): unknown => {
  if (typeof body !== "string") return undefined;
  const { id, method } = JSON.parse(body) as { readonly id?: unknown; readonly method?: unknown };
  return typeof method === "string" ? id : undefined;
};

const attributeError = (text: string, id: unknown): string => {
  try {
    const answer = parseJson(text) as { readonly error?: unknown; readonly id?: unknown };
    const isUnattributed = typeof answer.error === "object" && answer.error !== null && answer.id !== id;
    if (!isUnattributed) return text;
    const { code, message } = answer.error as { readonly code?: unknown; readonly message?: unknown };
    const error = { code: typeof code === "number" ? code : -32_000, message: String(message ?? "unknown error") };
    return JSON.stringify({ jsonrpc: "2.0", id, error });
  } catch {
    return text;
  }
};
