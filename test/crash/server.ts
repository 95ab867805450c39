// A real `serve` process with a data directory and a port, for tests that kill, stop and restart it. All processes that are left are killed
// at the end.
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { Client } from "#src/client.ts";
import { temporaryDirectory } from "#test/db/deployments.ts";
import { ensureDatabase, removeServersDatabase, usesPostgres } from "#test/support/postgres-server.ts";
import { fillPrepared } from "#test/support/prepared.ts";
import { toProgramCommand } from "#test/support/program.ts";
import { ADMIN, readAnnouncedUrl, testConfig } from "#test/support/server.ts";

/** The minimum number of starts for a meaningful median. */
const ENOUGH_STARTS = 5;

/** Returns the command that starts the program, without arguments. */
export const command = toProgramCommand;

export type StartOptions = {
  env?: Record<string, string>;
  /** Command prefix, such as strace and its options. */
  commandPrefix?: string[];
};

/** How a process ended. */
export type ProcessExit = { code: number | null; signal: string; errors: string };

/** Returns a free loopback port. */
export const findFreePort = async (): Promise<number> => {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const { port } = probe.address() as { port: number };
  await new Promise((resolve) => probe.close(resolve));
  return port;
};

/** One running process. */
export class ServeProcess {
  readonly child: Bun.Subprocess<"ignore", "pipe", "pipe">;
  readonly ended: Promise<ProcessExit>;
  #errors = "";

  constructor(place: ServerSlot, { env = {}, commandPrefix = [] }: StartOptions = {}) {
    this.child = Bun.spawn([...commandPrefix, ...toProgramCommand(), "serve"], {
      env: {
        PATH: Bun.env.PATH ?? "",
        HOME: place.directory,
        SLIPWAY_DATA_DIR: place.directory,
        SLIPWAY_ADDRESS: `127.0.0.1:${place.port}`,
        SLIPWAY_ADMIN_EMAIL: ADMIN.email,
        SLIPWAY_ADMIN_USERNAME: ADMIN.username,
        SLIPWAY_ADMIN_PASSWORD: ADMIN.password,
        SLIPWAY_LOG_LEVEL: "warn",
        SLIPWAY_AGENT_LOG_LIMIT: String(2 ** 36),
        ...place.database,
        ...env,
      },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    const reading = this.#read();
    this.ended = this.child.exited.then(async () => {
      await reading;
      return { code: this.child.exitCode, signal: String(this.child.signalCode ?? ""), errors: this.#errors };
    });
  }

  /** The process's standard error output so far. */
  get errors(): string {
    return this.#errors;
  }

  kill(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  /** Returns the resident memory in bytes; 0 if unknown. */
  rss(): number {
    return Number(/^VmRSS:\s+(\d+) kB/m.exec(this.#readProcFile("status"))?.[1] ?? 0) * 1024;
  }

  /** Returns the number of open file descriptors; 0 if unknown. */
  descriptors(): number {
    const path = `/proc/${this.child.pid}/fd`;
    return existsSync(path) ? readdirSync(path).length : 0;
  }

  #readProcFile(name: string): string {
    const path = `/proc/${this.child.pid}/${name}`;
    return existsSync(path) ? readFileSync(path, "utf8") : "";
  }

  async #read(): Promise<void> {
    const decoder = new TextDecoder();
    for await (const chunk of this.child.stderr) this.#errors += decoder.decode(chunk, { stream: true });
  }
}

/** The places that are not disposed yet: however the tests end, no server or daemon outlives them. */
const openPlaces = new Set<ServerSlot>();
process.on("exit", () => {
  for (const place of openPlaces) place.killAll();
});

/** A data directory and a port on which servers run one after the other; with SLIPWAY_TEST_DATABASE=postgres, also a database. */
export class ServerSlot implements AsyncDisposable {
  readonly #temp = temporaryDirectory();
  readonly #processes: ServeProcess[] = [];
  readonly directory = join(this.#temp.path, "data");
  readonly scratch = this.#temp.path;
  /** The setting with the database URL, if there is one. */
  database: Readonly<Record<string, string>> = {};
  readonly port: number;
  readonly client: Client;
  /** Milliseconds from spawn to the line that announces the URL, for every start so far. */
  readonly starts: number[] = [];

  private constructor(port: number) {
    this.port = port;
    openPlaces.add(this);
    this.client = new Client(`http://127.0.0.1:${port}`);
  }

  /** Creates the directory as after a first start with the user ADMIN. With `isNew`, the test runs the first start. */
  static async make({ isNew = false } = {}): Promise<ServerSlot> {
    const place = new ServerSlot(await findFreePort());
    if (usesPostgres) place.database = { SLIPWAY_DATABASE_URL: await ensureDatabase(place.directory) };
    else if (!isNew) {
      mkdirSync(place.directory, { mode: 0o700 });
      await fillPrepared(place.directory, testConfig, ADMIN.password);
    }
    return place;
  }

  /** The process that was started last. */
  get currentProcess(): ServeProcess {
    const newest = this.#processes.at(-1);
    if (!newest) throw new Error("no server was started here");
    return newest;
  }

  /** The standard error output of all processes so far. */
  get errors(): string {
    return this.#processes.map(({ errors }) => errors).join("");
  }

  /** Spawns a server without waiting. */
  spawn(options: StartOptions = {}): ServeProcess {
    const created = new ServeProcess(this, options);
    this.#processes.push(created);
    return created;
  }

  /** Starts a server and waits until it listens. Throws with its error output if it ends before. */
  async start(options: StartOptions = {}): Promise<ServeProcess> {
    const startedAt = performance.now();
    const created = this.spawn(options);
    try {
      await readAnnouncedUrl(created.child.stdout);
    } catch (error) {
      const { code, signal, errors } = await created.ended;
      throw new Error(`the server ended with ${signal || code} before it listened: ${errors}`, { cause: error });
    }
    this.starts.push(performance.now() - startedAt);
    return created;
  }

  /** Stops the newest server properly. Throws unless it exits with 0. */
  async stop(): Promise<void> {
    this.currentProcess.kill("SIGTERM");
    const { code, signal, errors } = await this.currentProcess.ended;
    if (code !== 0) throw new Error(`a clean stop ended with ${signal || code}: ${errors}`);
  }

  /**
   * Returns the processes with their home in a workspace of this place or of a worker in it; none if the system does not report homes.
   */
  processes(): number[] {
    const homes = ["workspaces", "worker/workspaces"].map((folder) => `\0HOME=${join(this.directory, folder)}/`);
    return (existsSync("/proc/self/environ") ? readdirSync("/proc") : [])
      .filter((name) => /^\d+$/.test(name) && homes.some((home) => `\0${readEnvironment(name)}`.includes(home)))
      .map(Number);
  }

  /**
   * Returns problems with the speed of the starts: they should take less than a second, or three times the first start. Does not judge a
   * few starts, which depend too much on other load.
   */
  findSlowStarts(): string[] {
    const [firstMs = 0, ...later] = this.starts;
    if (later.length < ENOUGH_STARTS) return [];
    const limitMs = Math.max(1000, firstMs * 3);
    const medianMs = later.sort((a, b) => a - b)[later.length >> 1] ?? 0;
    return medianMs > limitMs
      ? [`a restart takes ${Math.round(medianMs)} ms, more than the allowed ${Math.round(limitMs)} ms`]
      : [];
  }

  /** Kills all processes that are left: servers, and processes of local workspaces. */
  killAll(): void {
    for (const process of this.#processes) process.kill("SIGKILL");
    for (const pid of this.processes()) endProcess(pid);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.killAll();
    await Promise.all(this.#processes.map(({ ended }) => ended));
    // Servers may have started processes of workspaces while they were killed.
    this.killAll();
    openPlaces.delete(this);
    await removeServersDatabase(this.directory);
    this.#temp[Symbol.dispose]();
  }
}

const readEnvironment = (pid: string): string => {
  try {
    return readFileSync(`/proc/${pid}/environ`, "latin1");
  } catch {
    return "";
  }
};

const endProcess = (pid: number): void => {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // The process has already ended.
  }
};
