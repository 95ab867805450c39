// The server that a daemon under test connects to: a real WebSocket server that answers and records every call. A test can make it reject
// calls, stop answering, or drop the connection at any point of a call.
import type { MessageInitShape } from "@bufbuild/protobuf";
import { systemClock } from "#base/clock.ts";
import { Agent, type AgentHandlers } from "#src/wire/agent-api.ts";
import { ByteStream } from "#src/wire/byte-stream.ts";
import { serveSession } from "#src/wire/drpc/server.ts";
import { Lifecycle_State, Log_Level, type ManifestSchema } from "#src/wire/gen/agent_pb.ts";
import { createRouter } from "#src/wire/service.ts";
import { YamuxSession } from "#src/wire/yamux.ts";

export type ManifestInit = MessageInitShape<typeof ManifestSchema>;
export type Script = NonNullable<ManifestInit["scripts"]>[number];

type Handlers = Partial<AgentHandlers>;
type Method = keyof Handlers;
type SocketData = { stream?: ByteStream };

/** One call as received: the method and its request. */
export type ReceivedCall = { method: string; request: unknown; connection: number };

/** Returns a 16-byte ID that consists of this byte. */
export const bytes = (byte: number): Uint8Array => new Uint8Array(16).fill(byte);

/** Returns a start script with defaults for its ID, log source and other fields. */
export const script = (text: string, overrides: Partial<Exclude<Script, { $typeName: string }>> = {}): Script => ({
  id: bytes(1),
  logSourceId: bytes(101),
  script: text,
  displayName: "script",
  runOnStart: true,
  ...overrides,
});

export class RecordingServer implements AsyncDisposable {
  readonly receivedCalls: ReceivedCall[] = [];
  /** Upgrade requests, including rejected ones. */
  readonly upgradeRequests: { path: string; token: string | null }[] = [];
  manifest: ManifestInit = {};
  /** Status for rejecting upgrades; 101 accepts them. */
  status = 101;
  /** Stored lines ("level output") by source. Batches with a known ID are not stored again. */
  readonly stored = new Map<string, string[]>();
  /** Runs before a call is handled; throwing rejects it. */
  before: (method: string, request: unknown) => unknown = () => {};
  /** Runs after a call was handled and before its response. */
  after: (method: string, request: unknown) => unknown = () => {};
  logLimitExceeded = false;
  reportInterval = { seconds: 0n, nanos: 0 };
  /** Number of requests for a tunnel, which get a 404, like from a server without tunnels. */
  tunnelRequests = 0;
  readonly #batches = new Set<string>();
  readonly #server: ReturnType<typeof Bun.serve<SocketData>>;
  readonly #sockets = new Set<Bun.ServerWebSocket<SocketData>>();
  #connections = 0;
  #watchers = new Set<() => void>();

  constructor(port = 0) {
    this.#server = Bun.serve<SocketData>({
      port,
      hostname: "127.0.0.1",
      fetch: (request, server) => {
        const { pathname, search } = new URL(request.url);
        if (pathname.endsWith("/me/tunnel")) return this.#tunnel();
        this.upgradeRequests.push({ path: pathname + search, token: request.headers.get("service-session-token") });
        this.#wakeWatchers();
        if (this.status !== 101) return new Response("no", { status: this.status });
        return server.upgrade(request, { data: {} }) ? undefined : new Response("no", { status: 426 });
      },
      websocket: {
        open: (ws) => this.#open(ws),
        message: (ws, message) => ws.data.stream?.push(message),
        drain: (ws) => ws.data.stream?.drain(),
        close: (ws) => {
          this.#sockets.delete(ws);
          ws.data.stream?.end();
        },
      },
    });
  }

  get url(): URL {
    return new URL(`http://127.0.0.1:${this.#server.port}/`);
  }

  /** Cuts every connection without closing it properly. */
  dropConnections(): void {
    for (const socket of this.#sockets) socket.terminate();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.dropConnections();
    await this.#server.stop(true);
  }

  /** Resolves with the first result of `find`, now or after a later call. */
  async until<T>(find: (server: this) => T | undefined | false): Promise<T> {
    for (;;) {
      const found = find(this);
      if (found !== undefined && found !== false) return found;
      await new Promise<void>((resolve) => this.#watchers.add(resolve));
    }
  }

  #tunnel(): Response {
    this.tunnelRequests += 1;
    return new Response("no", { status: 404 });
  }

  calls(method: Method): ReceivedCall[] {
    return this.receivedCalls.filter((call) => call.method === method);
  }

  /** The lifecycle states in the order received. */
  get states(): string[] {
    return this.calls("updateLifecycle").map(({ request }) => {
      const { lifecycle } = request as { lifecycle: { state: Lifecycle_State } };
      return Lifecycle_State[lifecycle.state].toLowerCase();
    });
  }

  /** Returns the stored lines of the source whose ID consists of this byte. */
  lines(source = 101): string[] {
    return this.stored.get(Buffer.from(bytes(source)).toString("hex")) ?? [];
  }

  #wakeWatchers(): void {
    const watchers = this.#watchers;
    this.#watchers = new Set();
    for (const wake of watchers) wake();
  }

  #open(ws: Bun.ServerWebSocket<SocketData>): void {
    this.#sockets.add(ws);
    this.#connections += 1;
    const connection = this.#connections;
    const stream = new ByteStream({
      send: (data) => ws.sendBinary(data),
      close: (code, reason) => ws.close(code, reason),
    });
    ws.data.stream = stream;
    const session = new YamuxSession(stream, { role: "server", clock: systemClock, ping_interval_ms: 0 });
    void serveSession(session, createRouter(Agent, this.#handlers(connection)), { clock: systemClock });
  }

  #handlers(connection: number): Handlers {
    const answer = <K extends Method>(method: K, createResponse: (request: unknown) => unknown): Handlers => ({
      [method]: async (request: unknown) => {
        this.receivedCalls.push({ method, request, connection });
        try {
          await this.before(method, request);
          const response = createResponse(request);
          await this.after(method, request);
          return response;
        } finally {
          this.#wakeWatchers();
        }
      },
    });
    return {
      ...answer("getManifest", () => this.manifest),
      ...answer("updateStartup", (request) => (request as { startup: unknown }).startup),
      ...answer("updateLifecycle", (request) => (request as { lifecycle: unknown }).lifecycle),
      ...answer("batchCreateLogs", (request) => this.#store(request as never)),
      ...answer("scriptCompleted", () => ({})),
      ...answer("batchUpdateMetadata", () => ({})),
      ...answer("batchUpdateAppHealths", () => ({})),
      ...answer("updateStats", () => ({ reportInterval: this.reportInterval })),
      ...answer("pushResourcesMonitoringUsage", () => ({})),
    };
  }

  #store(request: { logSourceId: Uint8Array; batchId: Uint8Array; logs: { level: Log_Level; output: string }[] }) {
    if (this.logLimitExceeded) return { logLimitExceeded: true };
    const batch = Buffer.from(request.batchId).toString("hex");
    if (this.#batches.has(batch)) return {};
    this.#batches.add(batch);
    const source = Buffer.from(request.logSourceId).toString("hex");
    const lines = this.stored.get(source) ?? [];
    lines.push(...request.logs.map(({ level, output }) => `${Log_Level[level].toLowerCase()} ${output}`));
    this.stored.set(source, lines);
    return {};
  }
}
