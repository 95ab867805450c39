// Manages the MCP servers of a workspace: starts or connects to them as its `.mcp.json` files declare, lists their tools, and calls them
// for chats (facts/chats 5.5, rules MC-5, MC-6). A failed server is shown with its reason and retried later.
import type { Clock, Timer } from "#base/clock.ts";
import { AppError, notFound } from "#base/errors.ts";
import { log } from "#base/log.ts";
import { finishesWithin } from "#base/retry.ts";
import type { StoredResource } from "#schema/chats/chat-context.ts";
import { type CallLimits, CONNECT_MS, McpConnection } from "#src/mcp/connection.ts";
import type { McpAnswer } from "#src/mcp/content.ts";
import { McpError } from "#src/mcp/failure.ts";
import { openHttp } from "#src/mcp/http.ts";
import { LineTransport } from "#src/mcp/lines.ts";
import { callWithRenewal } from "#src/mcp/renewal.ts";
import type { ProcessGroups } from "../scripts/groups.ts";
import { type McpServerSpec, parseDeclaredServers } from "./mcp-config.ts";
import { startProgram } from "./mcp-program.ts";

export type McpOptions = { clock: Clock; groups: ProcessGroups; env: Readonly<Record<string, string>> };

/** Maximum size of the tool descriptions of all servers: a snapshot must fit into one message. */
const MAX_TOOLS_BYTES = 1024 * 1024;
/** Timeout for starting a program, which may have to install itself first. */
const PROGRAM_CONNECT_TIMEOUT_MS = 180_000;
/** A server that has not answered after this long is shown as starting. */
const STARTING_TIMEOUT_MS = 1_000;
/** Initial and maximum delay before a failed server is retried. The delay doubles with every failure. */
const RETRY_DELAY_MS = 5_000;
const MAX_RETRY_DELAY_MS = 5 * 60_000;
/** How long a tool call waits for the refreshed tool list when the call has changed it. */
const REFRESH_TIMEOUT_MS = 3_000;

type Config = { readonly folder: string; readonly text: string };
type Server = {
  readonly spec: McpServerSpec;
  readonly key: string;
  connection: Promise<McpConnection>;
  /** True while a connection is being made. */
  isOpening: boolean;
  resource: StoredResource;
  failures: number;
  retry?: Timer;
};

export class WorkspaceMcp {
  readonly #options: McpOptions;
  readonly #servers = new Map<string, Server>();
  #invalid: StoredResource[] = [];
  #onChange: () => Promise<void> = async () => {};
  #hasEnded = false;

  constructor(options: McpOptions) {
    this.#options = options;
  }

  /** Registers a callback for changes of `resources` outside of `use`; the callback resolves when the server has them. */
  onChange(onChange: () => Promise<void>): void {
    this.#onChange = onChange;
  }

  /**
   * Replaces the configs: ends servers that are no longer declared and starts new ones. If two servers have the same name, the first one is
   * used.
   */
  use(configs: readonly Config[]): void {
    if (this.#hasEnded) return;
    const wantedServers = new Map<string, McpServerSpec>();
    this.#invalid = [];
    for (const { text, folder } of configs) {
      const { servers, wrong } = parseDeclaredServers(text, folder, this.#options.env);
      for (const spec of servers) if (!wantedServers.has(spec.name)) wantedServers.set(spec.name, spec);
      this.#invalid.push(...wrong.map(({ name, problem }) => makeResource(name, "invalid", problem)));
    }
    for (const [name, { key }] of this.#servers) {
      const spec = wantedServers.get(name);
      if (!spec || JSON.stringify(spec) !== key) this.#drop(name);
    }
    for (const spec of wantedServers.values()) if (!this.#servers.has(spec.name)) this.#begin(spec);
  }

  /** Returns servers with a known tool list, failed ones, and slowly starting ones. */
  get resources(): StoredResource[] {
    const all = [...this.#servers.values()].map(({ resource }) => resource);
    let remainingBytes = MAX_TOOLS_BYTES;
    return [...all.filter(({ status }) => status !== "excluded"), ...this.#invalid]
      .sort((a, b) => (a.source < b.source ? -1 : 1))
      .map((resource) => {
        remainingBytes -= resource.size_bytes;
        if (remainingBytes >= 0 || resource.size_bytes === 0) return resource;
        const error = `together the servers describe their tools with more than ${MAX_TOOLS_BYTES} bytes`;
        return { ...makeResource(resource.source, "oversize", error), size_bytes: resource.size_bytes };
      });
  }

  /** Calls a tool. Rejects with 404 for an undeclared server and 503 for an unreachable one. */
  async call(
    server: string,
    tool: string,
    args: Record<string, unknown>,
    signal: AbortSignal,
    limits: CallLimits,
  ): Promise<McpAnswer> {
    const declared = this.#servers.get(server);
    if (!declared) throw notFound();
    try {
      return await callWithRenewal(
        () => this.#open(declared),
        async (connection) => {
          const answer = await connection.call(tool, args, signal, limits);
          // The call may have changed the tool list, and the next step must see the change.
          await finishesWithin(this.#options.clock, REFRESH_TIMEOUT_MS, this.#refreshTools(declared, connection));
          return answer;
        },
      );
    } catch (error) {
      if (!(error instanceof McpError)) throw error;
      throw new AppError("overloaded", `The MCP server "${server}" failed: ${error.message}`);
    }
  }

  /** Ends all servers; no more are started. */
  end(): void {
    this.#hasEnded = true;
    for (const name of [...this.#servers.keys()]) this.#drop(name);
  }

  #begin(spec: McpServerSpec): void {
    const resource = makeResource(spec.name, "excluded", "");
    const server: Server = {
      spec,
      key: JSON.stringify(spec),
      connection: NOT_CONNECTED,
      isOpening: false,
      resource,
      failures: 0,
    };
    this.#servers.set(spec.name, server);
    this.#connect(server).catch(() => {});
    this.#options.clock.after(STARTING_TIMEOUT_MS, () => {
      if (server.resource.status !== "excluded") return;
      void this.#setResource(server, makeResource(spec.name, "unreadable", STARTING_REASON));
    });
  }

  /** Returns the open connection, the pending one, or a new one. */
  async #open(server: Server): Promise<McpConnection> {
    const connection = await server.connection.catch(() => undefined);
    if (connection?.isOpen) return connection;
    return server.isOpening ? server.connection : this.#connect(server);
  }

  /** Makes one connection at a time; concurrent callers share it. */
  #connect(server: Server): Promise<McpConnection> {
    const { spec } = server;
    server.retry?.cancel();
    const opened = this.#connectTo(server);
    server.connection = opened;
    server.isOpening = true;
    void opened.then(
      (connection) => {
        server.isOpening = false;
        server.failures = 0;
        void this.#setTools(server, connection);
      },
      (error) => {
        server.isOpening = false;
        server.failures += 1;
        log("daemon").warn("the MCP server {name} cannot be used: {error}", { name: spec.name, error: error.message });
        void this.#setResource(server, makeResource(spec.name, "unreadable", error.message));
        this.#retryLater(server);
      },
    );
    return opened;
  }

  /** Retries a failed server later. Retries cannot depend on calls, because a server without known tools is never called. */
  #retryLater(server: Server): void {
    if (this.#servers.get(server.spec.name) !== server) return;
    const delay_ms = Math.min(RETRY_DELAY_MS * 2 ** (server.failures - 1), MAX_RETRY_DELAY_MS);
    server.retry = this.#options.clock.after(delay_ms, () => {
      if (this.#servers.get(server.spec.name) === server && !server.isOpening) this.#connect(server).catch(() => {});
    });
  }

  async #refreshTools(server: Server, connection: McpConnection): Promise<void> {
    const before = connection.tools;
    if ((await connection.getTools()) !== before) await this.#setTools(server, connection);
  }

  #setTools(server: Server, { tools }: McpConnection): Promise<void> {
    const { name } = server.spec;
    const prefixed = tools.map((one) => ({ ...one, name: `${name}__${one.name}` }));
    return this.#setResource(server, { ...makeResource(name, "ok", ""), tools: prefixed });
  }

  async #setResource(server: Server, resource: StoredResource): Promise<void> {
    if (this.#servers.get(server.spec.name) !== server) {
      void server.connection.then((one) => one.close()).catch(() => {});
      return;
    }
    const size_bytes = resource.tools ? JSON.stringify(resource.tools).length : 0;
    server.resource = { ...resource, size_bytes };
    await this.#onChange();
  }

  #drop(name: string): void {
    const server = this.#servers.get(name);
    server?.retry?.cancel();
    this.#servers.delete(name);
    void server?.connection.then((one) => one.close()).catch(() => {});
  }

  #connectTo(server: Server): Promise<McpConnection> {
    const { clock } = this.#options;
    const { spec } = server;
    const refreshTools = (): void => {
      void server.connection.then((connection) => this.#refreshTools(server, connection)).catch(() => {});
    };
    if (spec.kind !== "stdio") {
      const target = { url: new URL(spec.url), kind: spec.kind, headers: spec.headers, fetch: globalThis.fetch };
      return openHttp(clock, target, { connect_ms: CONNECT_MS, onToolsChanged: refreshTools });
    }
    const start = (transport: LineTransport) => startProgram(this.#options, spec, transport);
    const options = { connect_ms: PROGRAM_CONNECT_TIMEOUT_MS, onToolsChanged: refreshTools };
    return McpConnection.open(clock, () => new LineTransport(start), options);
  }
}

const NOT_CONNECTED = Promise.reject<McpConnection>(new McpError("not connected"));
NOT_CONNECTED.catch(() => {});
const STARTING_REASON = "it is starting";

const makeResource = (source: string, status: StoredResource["status"], error: string): StoredResource => ({
  kind: "mcp_server",
  source,
  status,
  size_bytes: 0,
  error,
});
