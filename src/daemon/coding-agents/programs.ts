// Runs the coding agents of chats. Each program has its own process group and home folder; its dependencies are installed once per
// workspace. The server writes input and reads output by offset, so that a broken connection or a repeated request does not lose or
// duplicate bytes.
import { existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Clock, Timer } from "#base/clock.ts";
import { AppError, conflict, notFound } from "#base/errors.ts";
import { sha256 } from "#base/ids.ts";
import { log } from "#base/log.ts";
import { finishesWithin, pause } from "#base/retry.ts";
import type {
  AgentProgramOutput,
  AgentProgramState,
  ModelTokens,
  StartAgentProgram,
} from "#schema/agents/agent-program.ts";
import { Wakeup } from "#src/wire/index.ts";
import { type Environment, expand } from "../environment.ts";
import type { ProcessGroups } from "../scripts/groups.ts";
import { runProcess } from "../scripts/process.ts";
import { trimPartialCharacter } from "../whole-characters.ts";
import { writeHomeFiles } from "./home-files.ts";
import { McpRelay, McpRequests } from "./mcp-relay.ts";

const MAX_BUFFERED_BYTES = 4 * 1024 * 1024;
const MAX_RESPONSE_BYTES = 256 * 1024;

/**
 * Buffers the output of a coding agent until the server has it: nothing is lost when a connection breaks, and a program that writes faster
 * than the server reads has to wait (backpressure).
 */
class PendingOutput {
  #buffered = Buffer.alloc(0);
  /** The offset of the first buffered byte. */
  #from = 0;
  readonly #readable = new Wakeup();
  /** Signals that more output is available or that the output has ended. */
  readonly news = new Wakeup();

  get written(): number {
    return this.#from + this.#buffered.byteLength;
  }

  /** Buffers bytes, and resolves when more can be accepted. */
  async push(bytes: Uint8Array): Promise<void> {
    this.#buffered = Buffer.concat([this.#buffered, bytes]);
    this.news.wake();
    while (this.#buffered.byteLength > MAX_BUFFERED_BYTES) await this.#readable.wait();
  }

  /** Returns the output from `after` on, in whole characters, and discards earlier output. */
  read(after: number, isOver: boolean): { readonly output: string; readonly next: number } {
    const start = Math.min(Math.max(after, this.#from), this.written);
    this.#buffered = this.#buffered.subarray(start - this.#from);
    this.#from = start;
    this.#readable.wake();
    const requested = this.#buffered.subarray(0, MAX_RESPONSE_BYTES);
    const complete =
      isOver && requested.byteLength === this.#buffered.byteLength ? requested : trimPartialCharacter(requested);
    return {
      output: new TextDecoder("utf-8", { ignoreBOM: true }).decode(complete),
      next: start + complete.byteLength,
    };
  }
}

const MAX_RUNNING = 64;
const MAX_WAIT_MS = 30_000;
const MAX_ERROR_CHARS = 4_000;
const INSTALL_TIMEOUT_MS = 15 * 60_000;
/** If the server has not read for this long, the program ends. */
const UNREAD_TIMEOUT_MS = 10 * 60_000;
/** How long a program may take to exit before the next one of its chat starts. */
const END_TIMEOUT_MS = 6_000;
/** How long the output of an ended program can still be read. */
const OUTPUT_RETENTION_MS = 60_000;

type Options = {
  readonly clock: Clock;
  readonly groups: ProcessGroups;
  readonly env: Environment;
  readonly directory: string;
  /** Where homes and installed programs are stored. */
  readonly state: string;
  /** Hides one of the daemon's own ports from the port list. */
  readonly hidePort: (port: number) => void;
};

/**
 * `state`: the last state that the caller received; empty if none. `heard`: the number of the newest MCP request that the caller has
 * received.
 */
export type OutputQuery = {
  readonly after: number;
  readonly state: string;
  readonly heard: number;
  readonly wait_ms: number;
};

type Program = {
  readonly chat_id: string;
  readonly output: PendingOutput;
  readonly mcp: McpRequests | undefined;
  state: AgentProgramState;
  group: number;
  exit_code: number | null;
  error_output: string;
  /** Bytes of input accepted so far. */
  taken: number;
  write(bytes: Uint8Array): Promise<void>;
  isUnwanted: boolean;
  ended: Promise<void>;
  unreadTimer: Timer | undefined;
};

export class CodingAgentPrograms {
  readonly #options: Options;
  readonly #programs = new Map<string, Program>();
  readonly #installs = new Map<string, Promise<void>>();
  readonly #relay: McpRelay;

  constructor(options: Options) {
    this.#options = options;
    const findRequests = (id: string): McpRequests | undefined => {
      const program = this.#programs.get(id);
      return program?.state === "running" ? program.mcp : undefined;
    };
    this.#relay = new McpRelay(options.clock, findRequests, options.hidePort);
  }

  /**
   * Starts a program after installing its dependencies. Does nothing if a program with this ID exists; ends another program of the same
   * chat first. Rejects with 429 while too many run.
   */
  start(request: StartAgentProgram): void {
    if (this.#programs.has(request.id)) return;
    const running = [...this.#programs.values()].filter(({ state }) => state !== "ended");
    if (running.length >= MAX_RUNNING) {
      throw new AppError("too_many_requests", `${MAX_RUNNING} coding agents run already.`);
    }
    const previous = [...this.#programs.entries()].filter(([, { chat_id }]) => chat_id === request.chat_id);
    for (const [id] of previous) this.end(id);
    const output = new PendingOutput();
    const { mcp_token } = request;
    const program: Program = {
      chat_id: request.chat_id,
      output,
      mcp: mcp_token === undefined ? undefined : new McpRequests(mcp_token, () => output.news.wake()),
      state: "installing",
      group: 0,
      exit_code: null,
      error_output: "",
      taken: 0,
      write: async () => {
        throw conflict("The program is not running.");
      },
      isUnwanted: false,
      ended: Promise.resolve(),
      unreadTimer: undefined,
    };
    this.#programs.set(request.id, program);
    this.#watchReader(request.id, program);
    program.ended = this.#run(request, program, Promise.all(previous.map(([, one]) => one.ended))).finally(() => {
      program.state = "ended";
      program.unreadTimer?.cancel();
      program.output.news.wake();
      this.#options.clock.after(OUTPUT_RETENTION_MS, () => this.#programs.delete(request.id));
    });
  }

  /** Returns output from `after` on. Waits up to `wait_ms` for more output or for a change of state. Rejects with 404. */
  async output(id: string, { after, state, heard, wait_ms }: OutputQuery): Promise<AgentProgramOutput> {
    const program = this.#find(id);
    this.#watchReader(id, program);
    const { output, mcp } = program;
    const isNews = (): boolean =>
      output.written > after || (mcp?.newest ?? 0) > heard || program.state !== state || program.state === "ended";
    if (!isNews() && wait_ms > 0) {
      const waitEnd = new AbortController();
      const wait = pause(this.#options.clock, Math.min(wait_ms, MAX_WAIT_MS), waitEnd.signal);
      while (!isNews()) {
        const isTimedOut = await Promise.race([wait.then(() => true), output.news.wait().then(() => false)]);
        if (isTimedOut) break;
      }
      waitEnd.abort();
    }
    const isOver = program.state === "ended";
    const { exit_code, error_output } = program;
    const { directory } = this.#options;
    return {
      state: program.state,
      directory,
      ...output.read(after, isOver),
      exit_code,
      error_output,
      ...(mcp === undefined ? {} : { mcp_url: this.#relay.getUrl(id), mcp_requests: mcp.listAfter(heard) }),
    };
  }

  /** Answers an MCP request of the program. Rejects with 404. */
  answer(id: string, number: number, message: string): void {
    this.#find(id).mcp?.answer(number, message);
  }

  /**
   * Writes to the program's input. `at`: the offset of the first byte; bytes accepted earlier are not written again. Rejects with 404 or
   * 409.
   */
  async input(id: string, at: number, bytes: Uint8Array): Promise<number> {
    const program = this.#find(id);
    if (at > program.taken) throw conflict("Input is missing before this offset.");
    const fresh = bytes.subarray(program.taken - at);
    program.taken += fresh.byteLength;
    if (fresh.byteLength > 0) await program.write(fresh);
    return program.taken;
  }

  /** Ends the program and everything that it has started. Does nothing if it has already ended. */
  end(id: string): void {
    const program = this.#programs.get(id);
    if (!program || program.state === "ended") return;
    program.isUnwanted = true;
    if (program.group !== 0) this.#options.groups.end(program.group);
  }

  /** Removes the homes of deleted chats, once their programs have ended. */
  async removeChats(chat_ids: readonly string[]): Promise<void> {
    const programs = [...this.#programs].filter(([, { chat_id }]) => chat_ids.includes(chat_id));
    for (const [id] of programs) this.end(id);
    await finishesWithin(this.#options.clock, END_TIMEOUT_MS, Promise.all(programs.map(([, { ended }]) => ended)));
    for (const chat_id of chat_ids) rmSync(this.#toHome(chat_id), { recursive: true, force: true });
  }

  /** Returns the chats that have a home here. */
  listChats(): string[] {
    const homes = join(this.#options.state, "homes");
    return existsSync(homes) ? readdirSync(homes) : [];
  }

  #find(id: string): Program {
    const program = this.#programs.get(id);
    if (!program) throw notFound();
    return program;
  }

  #toHome(chat_id: string): string {
    return join(this.#options.state, "homes", chat_id);
  }

  #watchReader(id: string, program: Program): void {
    program.unreadTimer?.cancel();
    if (program.state === "ended") return;
    program.unreadTimer = this.#options.clock.after(UNREAD_TIMEOUT_MS, () => this.end(id));
  }

  async #run(request: StartAgentProgram, program: Program, previous: Promise<unknown>): Promise<void> {
    const { clock, groups, directory } = this.#options;
    await finishesWithin(clock, END_TIMEOUT_MS, previous);
    const installed = this.#toInstallFolder(request.install_script);
    try {
      await this.#install(request.install_script, installed);
    } catch (error) {
      program.error_output = (error as Error).message;
      return;
    }
    if (program.isUnwanted) return;
    const env = this.#buildEnvironment(request, installed);
    const programArgs = request.arguments.map((word) => expand(word, env));
    let child: ReturnType<typeof spawnPiped>;
    try {
      writeHomeFiles(this.#toHome(request.chat_id), request);
      child = spawnPiped([request.command, ...programArgs], directory, env);
    } catch (error) {
      program.error_output = `The program cannot be started: ${(error as Error).message}`;
      return;
    }
    groups.add(child.pid);
    program.group = child.pid;
    program.write = async (bytes) => {
      child.stdin.write(bytes);
      await child.stdin.flush();
    };
    program.state = "running";
    program.output.news.wake();
    const readOutput = (async () => {
      for await (const bytes of child.stdout) await program.output.push(bytes);
    })().catch(() => {});
    const decoder = new TextDecoder();
    const readErrors = (async () => {
      for await (const bytes of child.stderr) {
        program.error_output = (program.error_output + decoder.decode(bytes, { stream: true })).slice(-MAX_ERROR_CHARS);
      }
    })().catch(() => {});
    program.exit_code = await child.exited;
    // Also ends its child processes, which could otherwise keep its pipes open.
    groups.end(child.pid);
    await finishesWithin(clock, END_TIMEOUT_MS, Promise.all([readOutput, readErrors]));
    groups.onLeaderEnd(child.pid);
  }

  /** Returns the install folder of a script, which depends on the script's text: a changed script installs into another folder. */
  #toInstallFolder(script: string): string {
    return join(this.#options.state, "installed", sha256(script).slice(0, 16));
  }

  #buildEnvironment({ chat_id, variables, model_tokens }: StartAgentProgram, installed: string): Environment {
    const env = addModelToken(this.#options.env, model_tokens);
    const home = this.#toHome(chat_id);
    mkdirSync(home, { recursive: true, mode: 0o700 });
    const gitconfig = join(env.HOME ?? "", ".gitconfig");
    const expanded = Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, expand(value, env)]));
    const folders = [join(installed, "bin"), join(installed, "node_modules", ".bin"), expanded.PATH ?? env.PATH ?? ""];
    return {
      ...env,
      // Commits keep the user's identity although the agent has its own home.
      ...(env.GIT_CONFIG_GLOBAL === undefined && existsSync(gitconfig) ? { GIT_CONFIG_GLOBAL: gitconfig } : {}),
      ...expanded,
      HOME: home,
      PATH: folders.join(":"),
    };
  }

  /** Runs each script once; concurrent callers wait for the same run. Rejects with the last lines of a failed script. */
  #install(script: string, folder: string): Promise<void> {
    if (script.trim() === "" || existsSync(join(folder, DONE_FILE))) return Promise.resolve();
    const pending = this.#installs.get(folder);
    if (pending) return pending;
    const install = this.#runInstall(script, folder).finally(() => this.#installs.delete(folder));
    this.#installs.set(folder, install);
    return install;
  }

  async #runInstall(script: string, folder: string): Promise<void> {
    const { clock, groups, env } = this.#options;
    mkdirSync(folder, { recursive: true });
    const decoder = new TextDecoder();
    let tail = "";
    const { exit_code, timed_out } = await runProcess({
      command: ["sh", "-c", script],
      directory: folder,
      env: { ...env, [INSTALL_FOLDER_VARIABLE]: folder },
      clock,
      groups,
      timeout_ms: INSTALL_TIMEOUT_MS,
      onOutput: (_, bytes) => {
        tail = (tail + decoder.decode(bytes, { stream: true })).slice(-MAX_ERROR_CHARS);
      },
    });
    if (exit_code === 0 && !timed_out) {
      await Bun.write(join(folder, DONE_FILE), "");
      return;
    }
    log("daemon").warn("a coding agent cannot be installed: its script ended with {exit_code}", { exit_code });
    const reason = timed_out ? "took longer than 15 minutes" : `ended with code ${exit_code}`;
    throw new Error(`The install script ${reason}.\n${tail.trim()}`);
  }
}

/** Replaces the workspace's token by the chat's token. Other values are unchanged: a key that the template has set is for another server. */
const addModelToken = (env: Environment, tokens: ModelTokens | undefined): Environment =>
  tokens === undefined
    ? env
    : Object.fromEntries(
        Object.entries(env).map(([name, value]) => [name, value === tokens.of_workspace ? tokens.of_chat : value]),
      );

/** The folder that a script installs into; its `bin` and `node_modules/.bin` are on the agent's path. */
const INSTALL_FOLDER_VARIABLE = "SLIPWAY_INSTALL_DIR";
const DONE_FILE = ".installed";

const spawnPiped = (command: string[], cwd: string, env: Environment) => {
  // The program is searched on the PATH of its own environment, not on the daemon's.
  const [name = "", ...words] = command;
  const found = name.includes("/") ? name : Bun.which(name, { PATH: env.PATH ?? "" });
  if (!found) throw new Error(`there is no program "${name}" on the path`);
  return Bun.spawn([found, ...words], {
    cwd,
    env: { ...env },
    stdin: "pipe",
    stdout: "pipe",
    stderr: "pipe",
    detached: true,
  });
};
