// The MCP servers of a workspace: started or called by the daemon as its `.mcp.json` files say, asked for their tools once, and called for
// the server's chats (facts/chats 5.5, rules MC-5, MC-6). One that fails is told of with its reason and tried again when it is called.
import type { Clock } from "#base/clock.ts";
import { AppError, notFound } from "#base/errors.ts";
import { log } from "#base/log.ts";
import type { StoredResource } from "#schema/chats/chat-context.ts";
import { McpConnection, McpError } from "#src/mcp/connection.ts";
import type { McpAnswer } from "#src/mcp/content.ts";
import { httpTransport } from "#src/mcp/http.ts";
import { LineTransport } from "#src/mcp/lines.ts";
import type { ProcessGroups } from "../scripts/groups.ts";
import { declaredServers, type McpServerSpec } from "./mcp-config.ts";

export type McpOptions = { clock: Clock; groups: ProcessGroups; env: Readonly<Record<string, string>> };

/** Bytes that the tools of all servers may be described with: a snapshot must fit into one message. */
const MOST_TOOLS = 1024 * 1024;

type Config = { readonly folder: string; readonly text: string };
type Server = {
  readonly spec: McpServerSpec;
  readonly key: string;
  connection: Promise<McpConnection>;
  resource: StoredResource;
};

export class WorkspaceMcp {
  readonly #options: McpOptions;
  readonly #servers = new Map<string, Server>();
  #wrong: StoredResource[] = [];
  #changed: () => void = () => {};
  #isOver = false;

  constructor(options: McpOptions) {
    this.#options = options;
  }

  /** Told whenever `resources` has changed by itself. */
  onChange(changed: () => void): void {
    this.#changed = changed;
  }

  /** These configs count from now on: what they no longer declare ends, what is new begins. The first of a name wins. */
  use(configs: readonly Config[]): void {
    if (this.#isOver) return;
    const wanted = new Map<string, McpServerSpec>();
    this.#wrong = [];
    for (const { text, folder } of configs) {
      const { servers, wrong } = declaredServers(text, folder, this.#options.env);
      for (const spec of servers) if (!wanted.has(spec.name)) wanted.set(spec.name, spec);
      this.#wrong.push(...wrong.map(({ name, problem }) => resourceOf(name, "invalid", problem)));
    }
    for (const [name, { key }] of this.#servers) {
      const spec = wanted.get(name);
      if (!spec || JSON.stringify(spec) !== key) this.#drop(name);
    }
    for (const spec of wanted.values()) if (!this.#servers.has(spec.name)) this.#begin(spec);
  }

  /** The servers whose tools are known, and those that failed; one that is still being asked is left out. */
  get resources(): StoredResource[] {
    const all = [...this.#servers.values()].map(({ resource }) => resource);
    let left = MOST_TOOLS;
    return [...all.filter(({ status }) => status !== "excluded"), ...this.#wrong]
      .sort((a, b) => (a.source < b.source ? -1 : 1))
      .map((one) => {
        left -= one.size_bytes;
        if (left >= 0 || one.size_bytes === 0) return one;
        const error = `together the servers describe their tools with more than ${MOST_TOOLS} bytes`;
        return { ...resourceOf(one.source, "oversize", error), size_bytes: one.size_bytes };
      });
  }

  /** What a tool answers. 404 for a server nobody declares, 503 when it cannot be reached. */
  async call(server: string, tool: string, args: Record<string, unknown>, signal: AbortSignal): Promise<McpAnswer> {
    const known = this.#servers.get(server);
    if (!known) throw notFound();
    try {
      let connection = await known.connection.catch(() => undefined);
      if (!connection?.isOpen) connection = await this.#connect(known);
      return await connection.call(tool, args, signal);
    } catch (error) {
      if (!(error instanceof McpError)) throw error;
      throw new AppError("overloaded", `The MCP server "${server}" has failed: ${error.message}`);
    }
  }

  /** Everything that was begun ends; nothing begins any more. */
  end(): void {
    this.#isOver = true;
    for (const name of [...this.#servers.keys()]) this.#drop(name);
  }

  #begin(spec: McpServerSpec): void {
    const resource = resourceOf(spec.name, "excluded", "");
    const server = { spec, key: JSON.stringify(spec), connection: NEVER, resource };
    this.#servers.set(spec.name, server);
    this.#connect(server).catch(() => {});
  }

  /** One connection at a time; whoever comes meanwhile waits for the same. */
  #connect(server: Server): Promise<McpConnection> {
    const { spec } = server;
    const opened = McpConnection.open(this.#options.clock, () => this.#transport(spec));
    server.connection = opened;
    void opened.then(
      ({ tools }) => {
        const prefixed = tools.map((one) => ({ ...one, name: `${spec.name}__${one.name}` }));
        this.#setResource(server, { ...resourceOf(spec.name, "ok", ""), tools: prefixed });
      },
      (error) => {
        log("daemon").warn("the MCP server {name} cannot be used: {error}", { name: spec.name, error: error.message });
        this.#setResource(server, resourceOf(spec.name, "unreadable", error.message));
      },
    );
    return opened;
  }

  #setResource(server: Server, resource: StoredResource): void {
    if (this.#servers.get(server.spec.name) !== server) {
      void server.connection.then((one) => one.close()).catch(() => {});
      return;
    }
    const size_bytes = resource.tools ? JSON.stringify(resource.tools).length : 0;
    server.resource = { ...resource, size_bytes };
    this.#changed();
  }

  #drop(name: string): void {
    const server = this.#servers.get(name);
    this.#servers.delete(name);
    void server?.connection.then((one) => one.close()).catch(() => {});
  }

  #transport(spec: McpServerSpec) {
    if (spec.kind === "stdio") return new LineTransport((transport) => this.#start(spec, transport));
    return httpTransport({ url: new URL(spec.url), kind: spec.kind, headers: spec.headers, fetch: globalThis.fetch });
  }

  /** A program with a group of its own, which ends as a whole. */
  #start(spec: Extract<McpServerSpec, { kind: "stdio" }>, transport: LineTransport) {
    const { env, groups } = this.#options;
    const child = Bun.spawn([spec.command, ...spec.args], {
      cwd: spec.folder,
      env: { ...env, ...spec.env },
      stdin: "pipe",
      stdout: "pipe",
      stderr: "ignore",
      detached: true,
    });
    groups.add(child.pid);
    void (async () => {
      for await (const bytes of child.stdout) transport.push(bytes);
    })().catch(() => {});
    void child.exited.then(() => {
      groups.ended(child.pid);
      transport.ended();
    });
    return {
      write: async (bytes: Uint8Array) => {
        child.stdin.write(bytes);
        await child.stdin.flush();
      },
      end: () => groups.end(child.pid),
    };
  }
}

const NEVER = Promise.reject<McpConnection>(new McpError("not begun"));
NEVER.catch(() => {});

const resourceOf = (source: string, status: StoredResource["status"], error: string): StoredResource => ({
  kind: "mcp_server",
  source,
  status,
  size_bytes: 0,
  error,
});
