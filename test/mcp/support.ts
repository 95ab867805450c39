// Real MCP servers for tests: one over HTTP, with the current and the older protocol, and one over standard input and output. Run
// `bun support.ts` to start the second one.
import { Server, type Transport, WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";

/** A one-pixel PNG. */
export const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const toTextResult = (text: string) => ({ content: [{ type: "text" as const, text }] });
const inputSchema = { type: "object" as const, properties: { a: { type: "number" }, b: { type: "number" } } };

/**
 * Returns a server with these tools: `add` (a + b), `echo` (its arguments as JSON), `fail`, `wait` (forever), `long` (a times 500 KB of
 * text), `pid` (process ID and working directory), `picture` (a text and two images). `extraTools`: further tool definitions.
 */
export const makeServer = (extraTools: readonly unknown[] = []): Server => {
  const server = new Server({ name: "test", version: "1.0.0" }, { capabilities: { tools: {} } });
  const names = ["add", "echo", "fail", "wait", "long", "pid", "picture"];
  server.setRequestHandler("tools/list", () => {
    const tools = names.map((name) => ({ name, description: `The tool ${name}.`, inputSchema }));
    return { tools: [...tools, ...extraTools] as typeof tools };
  });
  server.setRequestHandler("tools/call", async ({ params }) => {
    const args = (params.arguments ?? {}) as { a?: number; b?: number };
    if (params.name === "add") return toTextResult(String((args.a ?? 0) + (args.b ?? 0)));
    if (params.name === "echo") return toTextResult(JSON.stringify(args));
    if (params.name === "fail") return { ...toTextResult("that went wrong"), isError: true };
    if (params.name === "long") return toTextResult("word ".repeat(100_000 * (args.a ?? 1)));
    if (params.name === "picture") {
      const image = { type: "image" as const, data: PIXEL, mimeType: "image/png" };
      // A server that uses Slipway's field names must not be able to reference a file.
      const structuredContent = { files: [{ file_id: "11111111-1111-4111-8111-111111111111" }] };
      return { content: [{ type: "text" as const, text: "look" }, image, image], structuredContent };
    }
    if (params.name === "pid") return toTextResult(`${process.pid} ${process.cwd()}`);
    await new Promise(() => {});
    return toTextResult("");
  });
  return server;
};

export type McpHost = AsyncDisposable & {
  readonly url: string;
  /** Headers of every request, newest last. */
  readonly seen: Headers[];
  /** Additional tool definitions, listed after the server's own. */
  extraTools: readonly unknown[];
  /** Returns a response to use instead of the normal one; undefined for the normal response. */
  refuse: ((request: Request) => Response | undefined) | undefined;
};

/** `/mcp` uses streamable HTTP, `/sse` the older protocol. */
export const startMcpHost = (): McpHost => {
  const seen: Headers[] = [];
  const legacyTransports = new Map<string, LegacyTransport>();
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    async fetch(request) {
      seen.push(request.headers);
      const refusal = host.refuse?.(request);
      if (refusal) return refusal;
      const { pathname, searchParams } = new URL(request.url);
      if (pathname === "/sse") {
        const transport = new LegacyTransport();
        legacyTransports.set(transport.sessionId, transport);
        await makeServer(host.extraTools).connect(transport);
        return transport.stream();
      }
      if (pathname === "/messages") {
        legacyTransports.get(searchParams.get("session") ?? "")?.onmessage?.((await request.json()) as never);
        return new Response("", { status: 202 });
      }
      const transport = new WebStandardStreamableHTTPServerTransport({});
      await makeServer(host.extraTools).connect(transport);
      return transport.handleRequest(request);
    },
  });
  const host: McpHost = {
    url: `http://127.0.0.1:${server.port}`,
    seen,
    extraTools: [],
    refuse: undefined,
    [Symbol.asyncDispose]: () => server.stop(true),
  };
  return host;
};

/** The server's side of the protocol before streamable HTTP, which the package implements only for clients. */
class LegacyTransport implements Transport {
  readonly sessionId: string = crypto.randomUUID();
  onmessage?: Transport["onmessage"];
  onclose?: () => void;
  #sendEvent: (event: string, data: string) => void = () => {};

  async start(): Promise<void> {}

  async send(message: unknown): Promise<void> {
    this.#sendEvent("message", JSON.stringify(message));
  }

  async close(): Promise<void> {
    this.onclose?.();
  }

  stream(): Response {
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#sendEvent = (event, data) =>
          controller.enqueue(new TextEncoder().encode(`event: ${event}\ndata: ${data}\n\n`));
        this.#sendEvent("endpoint", `/messages?session=${this.sessionId}`);
      },
    });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  }
}

if (import.meta.main) await makeServer().connect(new StdioServerTransport());
