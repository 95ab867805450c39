// A real MCP server with sessions, for tests. It can forget its sessions, and can stop and restart at its address. Its tools are slow,
// change the list of tools, or send requests to the client.
import { Server, WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";

const toTextResult = (text: string) => ({ content: [{ type: "text" as const, text }] });
const inputSchema = { type: "object" as const, properties: {} };

/** How the server rejects a forgotten session. */
export type Refusal = "404" | "400" | "200";

export type SessionHost = AsyncDisposable & {
  readonly url: string;
  /** Number of sessions started. */
  readonly sessionCount: number;
  /** Names of called tools, in order. */
  readonly calledTools: string[];
  /** Names of tools whose calls clients canceled. */
  readonly canceledTools: string[];
  /** Forgets all sessions, like a restart. */
  forget(): void;
  /** Stops listening. */
  stop(): Promise<void>;
  /** Listens again at the same address. */
  start(): void;
};

type Session = { readonly transport: WebStandardStreamableHTTPServerTransport; readonly server: Server };

export const startSessionHost = ({ refusal = "404" as Refusal, port = 0 } = {}): SessionHost => {
  const sessions = new Map<string, Session>();
  const calledTools: string[] = [];
  const canceledTools: string[] = [];
  const names = ["hello", "grow", "slow", "silent", "ask", "die"];
  let sessionCount = 0;
  let httpServer: Bun.Server<undefined> | undefined;

  const makeServer = (): Server => {
    const server = new Server(
      { name: "sessions", version: "1.0.0" },
      { capabilities: { tools: { listChanged: true } } },
    );
    server.setRequestHandler("tools/list", () => ({ tools: names.map((name) => ({ name, inputSchema })) }));
    server.setRequestHandler("tools/call", async ({ params }, { mcpReq }) => {
      calledTools.push(params.name);
      if (params.name === "grow") {
        names.push("late");
        await server.sendToolListChanged();
      }
      if (params.name === "slow") {
        for (let progress = 1; progress <= 6; progress++) {
          await Bun.sleep(250);
          const progressToken = mcpReq._meta?.progressToken;
          if (progressToken === undefined) continue;
          await mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress } });
        }
      }
      if (params.name === "silent") {
        await new Promise<void>((resolve) => mcpReq.signal.addEventListener("abort", () => resolve(), { once: true }));
        canceledTools.push(params.name);
      }
      if (params.name === "ask") return toTextResult(await collectAnswers(mcpReq));
      if (params.name === "die") await httpServer?.stop(true);
      return toTextResult(`hello ${sessionCount}`);
    });
    return server;
  };

  const handleRequest = async (request: Request): Promise<Response> => {
    const id = request.headers.get("mcp-session-id");
    const session = sessions.get(id ?? "");
    if (session) return session.transport.handleRequest(request);
    if (id !== null) return toRefusal(refusal);
    const server = makeServer();
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      onsessioninitialized: (sessionId) => {
        sessionCount += 1;
        sessions.set(sessionId, { transport, server });
      },
    });
    await server.connect(transport);
    return transport.handleRequest(request);
  };
  const listen = (listenPort: number): void => {
    httpServer = Bun.serve({ port: listenPort, hostname: "127.0.0.1", idleTimeout: 0, fetch: handleRequest });
  };
  listen(port);
  const boundPort = httpServer?.port ?? 0;
  return {
    url: `http://127.0.0.1:${boundPort}/mcp`,
    get sessionCount() {
      return sessionCount;
    },
    calledTools,
    canceledTools,
    forget: () => sessions.clear(),
    async stop() {
      sessions.clear();
      await httpServer?.stop(true);
    },
    start: () => listen(boundPort),
    async [Symbol.asyncDispose]() {
      await httpServer?.stop(true);
    },
  };
};

type RequestSender = { send(request: { method: string; params: object }): Promise<unknown> };

/** Returns the client's answers to requests for features that it has not offered. */
const collectAnswers = async (sender: unknown): Promise<string> => {
  const send = (method: string, params: object): Promise<string> =>
    (sender as RequestSender).send({ method, params }).then(
      (answer) => JSON.stringify(answer),
      (error: Error) => error.message,
    );
  const elicitation = await send("elicitation/create", {
    message: "Which?",
    requestedSchema: { type: "object", properties: {} },
  });
  const message = { role: "user", content: { type: "text", text: "hi" } };
  const sampling = await send("sampling/createMessage", { messages: [message], maxTokens: 5 });
  return `${elicitation} / ${sampling}`;
};

const toRefusal = (refusal: Refusal): Response => {
  const error = { code: -32_001, message: "Session not found" };
  if (refusal === "404") return Response.json({ jsonrpc: "2.0", error, id: null }, { status: 404 });
  if (refusal === "400") {
    const badRequestError = { code: -32_000, message: "Bad Request: No valid session ID provided" };
    return Response.json({ jsonrpc: "2.0", error: badRequestError, id: null }, { status: 400 });
  }
  return Response.json({ jsonrpc: "2.0", error, id: null });
};
