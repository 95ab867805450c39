// Serves the terminals of the workspace on port 2 of the tunnel. Each stream names a terminal by ID, which is started if it does not exist
// yet (rules TM-1, TM-4).
import type { Clock, Timer } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { type Duplex, Lookahead, readTerminalRequest, type TerminalRequest } from "#src/wire/index.ts";
import type { ContainerEngine } from "../containers/engine.ts";
import type { Environment } from "../environment.ts";
import type { ProcessGroups } from "../scripts/groups.ts";
import { findShell } from "../shell.ts";
import { startInContainer } from "./container.ts";
import { type ProgramEvents, startProgram, type TerminalProgram } from "./program.ts";
import { Screens } from "./screen.ts";
import { DETACHED_TTL_MS, Terminal } from "./terminal.ts";

export type TerminalSessionsOptions = {
  clock: Clock;
  groups: ProcessGroups;
  agent_id: string;
  env: Environment;
  directory: string;
  /** Returns undefined if the workspace has no container engine. */
  engine?(): ContainerEngine | undefined;
};

const MAX_TERMINALS = 100;
const REQUEST_TIMEOUT_MS = 30_000;

export class TerminalSessions {
  readonly #options: TerminalSessionsOptions;
  readonly #terminals = new Map<string, Terminal>();
  readonly #screens: Screens;
  readonly #unclaimedScreensTimer: Timer;
  #isStopping = false;
  #typed = 0;

  constructor(options: TerminalSessionsOptions) {
    this.#options = options;
    this.#screens = new Screens(options);
    // Screens of an earlier daemon are kept as long as any detached terminal.
    this.#unclaimedScreensTimer = options.clock.after(
      DETACHED_TTL_MS,
      () => void this.#screens.endOthers(this.#terminals.keys()),
    );
  }

  /** Serves one stream until its client disconnects. */
  async serve(connection: Duplex): Promise<void> {
    const requestTimer = this.#options.clock.after(REQUEST_TIMEOUT_MS, () =>
      connection.reset("No terminal request arrived in time."),
    );
    const stream = new Lookahead(connection);
    const request = await readTerminalRequest(stream).finally(() => requestTimer.cancel());
    try {
      await this.#getOrStart(request).attach(stream, { height: request.Height, width: request.Width });
    } catch (error) {
      // The terminal is the only place where the user can see the error.
      await stream.write(new TextEncoder().encode(`${(error as Error).message}\r\n`));
      await stream.end();
    }
  }

  /** Number of clients of all terminals. */
  get clients(): number {
    return [...this.#terminals.values()].reduce((sum, { clients }) => sum + clients, 0);
  }

  /** Number of inputs into all terminals since the daemon started. */
  get typed(): number {
    return this.#typed;
  }

  /** Returns the current folder of this terminal; undefined if the terminal does not exist or the folder is unknown. */
  getFolder(id: string): string | undefined {
    return this.#terminals.get(id)?.folder;
  }

  get size(): number {
    return this.#terminals.size;
  }

  /** Ends every terminal and rejects new ones. */
  async endAll(): Promise<void> {
    this.#isStopping = true;
    this.#unclaimedScreensTimer.cancel();
    await Promise.all([...this.#terminals.values()].map((one) => one.end()));
    await this.#screens.endAll();
  }

  #getOrStart(request: TerminalRequest): Terminal {
    const { ID } = request;
    const existing = this.#terminals.get(ID);
    if (existing) return existing;
    if (this.#isStopping) throw new Error("The workspace is stopping.");
    if (this.#terminals.size >= MAX_TERMINALS) throw new Error(`The workspace has ${MAX_TERMINALS} terminals already.`);
    const terminal: Terminal = new Terminal({
      start: request.Container === "" ? this.#prepareLocal(request) : this.#prepareInContainer(request),
      size: { height: request.Height, width: request.Width },
      clock: this.#options.clock,
      typed: () => {
        this.#typed += 1;
      },
      gone: () => {
        if (this.#terminals.get(ID) === terminal) this.#terminals.delete(ID);
      },
    });
    this.#terminals.set(ID, terminal);
    log("daemon").info("terminal started", { container: request.Container || undefined });
    return terminal;
  }

  #prepareLocal({ ID, BackendType, Command, Height, Width }: TerminalRequest): Start {
    if (!["", "buffered", "screen"].includes(BackendType))
      throw new Error("Unknown terminal backend. Use `buffered` or `screen`.");
    const { clock, groups, env, directory } = this.#options;
    const shell = findShell(env);
    const command = Command === "" ? [shell, "-l"] : [shell, "-c", Command];
    const size = { height: Height, width: Width };
    const options = { command, directory, env: buildTerminalEnvironment(env, shell), size, clock, groups };
    if (BackendType === "screen") return (events) => this.#screens.start(ID, options, events);
    return (events) => startProgram(options, events);
  }

  #prepareInContainer({ Container, ContainerUser, BackendType, Command, Height, Width }: TerminalRequest): Start {
    if (BackendType === "screen") throw new Error("A terminal in a container is always `buffered`.");
    const engine = this.#options.engine?.();
    if (!engine) throw new Error("The workspace has no container engine.");
    const options = {
      engine,
      clock: this.#options.clock,
      size: { height: Height, width: Width },
      container: Container,
      user: ContainerUser,
      command: Command,
    };
    return (events) => startInContainer(options, events);
  }
}

type Start = (events: ProgramEvents) => TerminalProgram;

/** Returns the environment of terminal programs, with the terminal type and a character set for their output. */
export const buildTerminalEnvironment = (env: Environment, shell: string): Environment => {
  const locale = env.LC_ALL || env.LC_CTYPE || env.LANG || "";
  const isUtf8 = /utf-?8/i.test(locale);
  // LC_ALL would override the value set here.
  const { LC_ALL, ...rest } = env;
  return {
    ...(isUtf8 ? env : rest),
    ...(isUtf8 ? {} : { ...(LC_ALL ? { LANG: LC_ALL } : {}), LC_CTYPE: "C.UTF-8" }),
    SHELL: shell,
    TERM: "xterm-256color",
    COLORTERM: env.COLORTERM ?? "truecolor",
  };
};
