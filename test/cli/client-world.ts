// A server and the command-line client with its own home folder, in pipes and on terminals.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { toProgramCommand } from "#test/support/program.ts";
import {
  ADMIN,
  startTestServer,
  type TestServer,
  type TestServerOptions,
  tempDirectory,
} from "#test/support/server.ts";

/** Puts a program `slipway` into a folder `bin` of `home`; returns a PATH that finds it. */
export const installProgram = (home: string): string => {
  mkdirSync(join(home, "bin"), { recursive: true });
  const script = `#!/bin/sh\nexec ${toProgramCommand()
    .map((word) => `'${word}'`)
    .join(" ")} "$@"\n`;
  writeFileSync(join(home, "bin", "slipway"), script, { mode: 0o755 });
  return `${join(home, "bin")}:${process.env.PATH}`;
};

export type RunResult = { code: number; out: string; err: string };
export type RunOptions = { stdin?: string | Uint8Array; env?: Record<string, string>; cwd?: string };

/** A program that runs on a terminal. */
export type TerminalProgram = AsyncDisposable & {
  readonly exited: Promise<number>;
  /** Returns everything shown so far. */
  shown(): string;
  /** Resolves with the output since the last call, once it contains the text. */
  until(text: string | RegExp): Promise<string>;
  type(keys: string): void;
  resize(columns: number, rows: number): void;
};

export type ClientWorld = AsyncDisposable & {
  readonly server: TestServer;
  readonly home: string;
  run(args: readonly string[], options?: RunOptions): Promise<RunResult>;
  /** Returns the output of a call that must succeed. */
  runOk(args: readonly string[], options?: RunOptions): Promise<string>;
  /** Runs a shell line on a terminal. */
  runOnTerminal(line: string, env?: Record<string, string>): TerminalProgram;
  /** Starts the program and returns it. */
  spawn(args: readonly string[]): Bun.Subprocess<"ignore", "pipe", "pipe">;
};

export const openClientWorld = async (options: TestServerOptions = {}): Promise<ClientWorld> => {
  const temp = tempDirectory();
  const home = join(temp.path, "home");
  mkdirSync(home);
  const server = await startTestServer(options);
  const runMark = process.env.TEST_RUN_MARK;
  const baseEnv = {
    PATH: installProgram(home),
    HOME: home,
    TERM: "xterm",
    ...(runMark ? { TEST_RUN_MARK: runMark } : {}),
  };
  const run = async (
    args: readonly string[],
    { stdin = "", env = {}, cwd = home }: RunOptions = {},
  ): Promise<RunResult> => {
    const input = typeof stdin === "string" ? new TextEncoder().encode(stdin) : stdin;
    const child = Bun.spawn(["slipway", ...args], {
      cwd,
      env: { ...baseEnv, ...env },
      stdio: [input, "pipe", "pipe"],
    });
    const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    return { code, out, err };
  };
  return {
    server,
    home,
    run,
    async runOk(args, options) {
      const { code, out, err } = await run(args, options);
      if (code !== 0) throw new Error(`slipway ${args.join(" ")}: ${code} ${err}`);
      return out;
    },
    runOnTerminal: (line, env = {}) => runOnTerminal(["sh", "-c", line], home, { ...baseEnv, ...env }),
    spawn: (args) => Bun.spawn(["slipway", ...args], { cwd: home, env: baseEnv, stdio: ["ignore", "pipe", "pipe"] }),
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      temp[Symbol.dispose]();
    },
  };
};

/** Signs in as the first user. */
export const signInAs = (world: ClientWorld): Promise<string> =>
  world.runOk(["login", world.server.url.origin, "--email", ADMIN.email, "--password-stdin"], {
    stdin: `${ADMIN.password}\n`,
  });

/** Opens a world in which the first user has signed in and has the workspace `dev`. */
export const openDevWorld = async (): Promise<ClientWorld> => {
  const world = await openClientWorld();
  await signInAs(world);
  await world.runOk(["workspaces", "create", "dev"]);
  return {
    ...world,
    async [Symbol.asyncDispose]() {
      await world.run(["workspaces", "delete", "dev", "--yes"]);
      await world[Symbol.asyncDispose]();
    },
  };
};

const runOnTerminal = (command: string[], cwd: string, env: Record<string, string>): TerminalProgram => {
  const decoder = new TextDecoder();
  let shown = "";
  let readLength = 0;
  let wake: () => void = () => {};
  let hasEnded = false;
  const child = Bun.spawn(command, {
    cwd,
    env,
    // Required to make the terminal its controlling terminal.
    detached: true,
    terminal: {
      cols: 80,
      rows: 24,
      name: "xterm",
      data(_, chunk) {
        shown += decoder.decode(chunk, { stream: true });
        wake();
      },
      exit() {
        hasEnded = true;
        wake();
      },
    },
  });
  return {
    exited: child.exited,
    shown: () => shown,
    async until(text) {
      for (;;) {
        const unread = shown.slice(readLength);
        const found = typeof text === "string" ? unread.indexOf(text) : unread.search(text);
        if (found >= 0) {
          const length = typeof text === "string" ? text.length : (text.exec(unread)?.[0].length ?? 0);
          readLength += found + length;
          return unread;
        }
        if (hasEnded) throw new Error(`the terminal has closed without ${text}: ${JSON.stringify(unread.slice(-300))}`);
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
    type: (keys) => void child.terminal?.write(keys),
    resize: (columns, rows) => child.terminal?.resize(columns, rows),
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
      child.terminal?.close();
    },
  };
};

/** Returns the token of the stored session. */
export const readToken = ({ home }: ClientWorld): string =>
  (JSON.parse(readFileSync(join(home, ".config", "slipway", "session.json"), "utf8")) as { token: string }).token;

/** A proxy to the server, which can cut its connections. */
export class CuttableProxy implements Disposable {
  readonly url: string;
  readonly #listener: Server;
  readonly #sockets = new Set<Socket>();

  constructor(target: URL) {
    this.#listener = createServer((client) => {
      const server = connect(Number(target.port), target.hostname);
      for (const socket of [client, server]) {
        this.#sockets.add(socket);
        socket.on("error", () => {}).on("close", () => this.#sockets.delete(socket));
      }
      client.pipe(server).pipe(client);
    }).listen(0, "127.0.0.1");
    this.url = `http://127.0.0.1:${(this.#listener.address() as { port: number }).port}`;
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  [Symbol.dispose](): void {
    this.cut();
    this.#listener.close();
  }
}
