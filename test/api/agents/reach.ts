// A workspace that the server can reach: a real server, a seeded agent and a real `slipway agent` process that is connected.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Clock, systemClock } from "#base/clock.ts";
import { uuid } from "#base/ids.ts";
import { Client, type ClientSocket } from "#src/client.ts";
import { toProgramCommand } from "#test/support/program.ts";
import { getContext, type SeededAgent, type SeedOptions, seedAgent } from "#test/support/seed.ts";
import { startTestServer, type TestServer } from "#test/support/server.ts";

export type Daemon = AsyncDisposable & { readonly process: Bun.Subprocess };

export type Reachable = AsyncDisposable & {
  readonly server: TestServer;
  readonly seeded: SeededAgent;
  /** The workspace's owner. */
  readonly owner: Client;
  /** The daemon's home folder, which is also the agent's folder. */
  readonly home: string;
  readonly daemon: Daemon;
  /** Returns the API path of the agent with this suffix: `/api/v2/workspaceagents/{id}/{suffix}`. */
  path(suffix: string): string;
};

/** Starts the daemon of this agent and waits until it has connected to `url`. */
export const startAgentProcess = async (
  server: TestServer,
  seeded: Pick<SeededAgent, "agent_id" | "agent_token">,
  home: string,
  { url = server.url, env = {} }: { url?: URL; env?: Record<string, string> } = {},
): Promise<Daemon> => {
  const { topics } = getContext(server);
  const connected = new Promise<void>((resolve) => {
    const unsubscribe = topics.subscribe("agent_connection", seeded.agent_id, () => {
      unsubscribe();
      resolve();
    });
  });
  const child = Bun.spawn([...toProgramCommand(), "agent"], {
    env: {
      PATH: process.env.PATH ?? "",
      HOME: home,
      SHELL: "/bin/bash",
      TMPDIR: tmpdir(),
      SLIPWAY_AGENT_TOKEN: seeded.agent_token,
      SLIPWAY_AGENT_URL: url.href,
      ...env,
    },
    stdio: ["ignore", "ignore", process.env.SLIPWAY_TEST_SHOW ? "inherit" : "ignore"],
  });
  await connected;
  return {
    process: child,
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      await child.exited;
    },
  };
};

export const startReachableAgent = async (
  options: SeedOptions = {},
  clock: Clock = systemClock,
): Promise<Reachable> => {
  // An explicit clock keeps the server in this process, which is required for seeding agents. The daemon may be the compiled binary.
  const server = await startTestServer({ clock });
  const seeded = await seedAgent(server, options);
  const home = mkdtempSync(join(tmpdir(), "slipway-home-"));
  const daemon = await startAgentProcess(server, seeded, home);
  return {
    server,
    seeded,
    home,
    daemon,
    owner: new Client(server.url, seeded.owner_token),
    path: (suffix) => `/api/v2/workspaceagents/${seeded.agent_id}/${suffix}`,
    async [Symbol.asyncDispose]() {
      await daemon[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
      rmSync(home, { recursive: true, force: true });
    },
  };
};

/** A client of a terminal, which records the output. */
export class TestTerminal implements Disposable {
  readonly id: string;
  readonly socket: ClientSocket;
  #output = "";

  private constructor(id: string, socket: ClientSocket) {
    this.id = id;
    this.socket = socket;
  }

  static async open(
    { owner, path }: Pick<Reachable, "owner" | "path">,
    options: {
      id?: string;
      command?: string;
      height?: number;
      width?: number;
      container?: string;
      container_user?: string;
      backend_type?: "buffered" | "screen";
    } = {},
  ): Promise<TestTerminal> {
    const { id = uuid(), ...rest } = options;
    const query = new URLSearchParams({ reconnect: id });
    for (const [name, value] of Object.entries(rest)) query.set(name, String(value));
    return new TestTerminal(id, await owner.socket(path(`pty?${query}`)));
  }

  sendInput(input: { data?: string; height?: number; width?: number }): void {
    this.socket.send(JSON.stringify(input));
  }

  /** Waits until the recorded output matches, and returns it. Rejects if the terminal ends first. */
  async until(pattern: RegExp): Promise<string> {
    while (!pattern.test(this.#output)) {
      const chunk = await this.socket.next();
      if (chunk === undefined) {
        const { code, reason } = await this.socket.closed;
        throw new Error(`the terminal ended (${code}, ${reason}) with: ${JSON.stringify(this.#output.slice(-500))}`);
      }
      this.#output += new TextDecoder().decode(chunk as Uint8Array);
    }
    return this.#output;
  }

  /** Clears the recorded output. */
  clearOutput(): void {
    this.#output = "";
  }

  [Symbol.dispose](): void {
    this.socket[Symbol.dispose]();
  }
}
