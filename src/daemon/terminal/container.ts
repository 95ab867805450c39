// A program on a terminal inside a container, using the exec calls of the workspace's container engine (facts/platform 5.6, rules TM-11,
// TM-12). Reads output only as fast as the terminal's clients accept it. Startup errors are shown on the terminal.
import type { Clock } from "#base/clock.ts";
import { uuid } from "#base/ids.ts";
import { log } from "#base/log.ts";
import { type Duplex, Wakeup } from "#src/wire/index.ts";
import type { ContainerEngine } from "../containers/engine.ts";
import { attachExec, createExec, loadExitCode, startInBackground } from "../containers/exec.ts";
import type { ProgramEvents, TerminalProgram, TerminalSize } from "./program.ts";

export type ContainerProgramOptions = {
  engine: ContainerEngine;
  /** Name or ID. */
  container: string;
  /** Empty for the container's default user. */
  user: string;
  /** Empty for a login shell. */
  command: string;
  size: TerminalSize;
  clock: Clock;
  /** Variables in addition to the container's own. */
  env?: Readonly<Record<string, string>>;
};

/** A container program's exit code, and how to end it. */
export type ContainerTerminal = TerminalProgram & {
  /** Null if the engine does not report it. */
  exitCode(): Promise<number | null>;
  signal(name: NodeJS.Signals): void;
};

// Runs the user's own shell if known, else `sh`; runs a command in that shell.
const SHELL_SCRIPT = `s=$( (getent passwd "$(id -u)" || grep "^[^:]*:[^:]*:$(id -u):" /etc/passwd) 2>/dev/null | head -n 1 | cut -d: -f7)
[ -x "$s" ] || s=/bin/sh
if [ $# -gt 0 ]; then exec "$s" -c "$1"; else exec "$s" -l; fi`;

/** Returns the command line that runs a command, or a login shell, in a container. */
export const buildShellCommand = (command: string): string[] => [
  ...["/bin/sh", "-c", SHELL_SCRIPT, "sh"],
  ...(command === "" ? [] : [command]),
];

/** This variable marks all processes of a program, because an engine has no call that ends them. */
const MARK_VARIABLE = "SLIPWAY_TERMINAL";
const SIGNAL_SCRIPT = `for p in /proc/[0-9]*; do
if tr '\\0' '\\n' < "$p/environ" 2>/dev/null | grep -qx "$1"; then kill -s "$2" "\${p#/proc/}" 2>/dev/null; kill -s CONT "\${p#/proc/}" 2>/dev/null; fi
done`;

/** Returns a variable by which `buildSignalCommand` finds the processes. */
export const createMark = (): string => `${MARK_VARIABLE}=${uuid()}`;

/** Returns a mark as an environment variable. */
export const toMarkVariable = (mark: string): Record<string, string> => ({
  [MARK_VARIABLE]: mark.slice(MARK_VARIABLE.length + 1),
});

/** Returns the command that signals all processes in a container with this mark. */
export const buildSignalCommand = (mark: string, name: string): string[] => [
  ...["/bin/sh", "-c", SIGNAL_SCRIPT, "sh", mark, name.replace(/^SIG/, "")],
];

/** Starts the program in the background; input is queued in the meantime. */
export const startInContainer = (options: ContainerProgramOptions, events: ProgramEvents): ContainerTerminal =>
  new ContainerProgram(options, events);

class ContainerProgram implements ContainerTerminal {
  readonly exited: Promise<unknown>;
  readonly #options: ContainerProgramOptions;
  readonly #events: ProgramEvents;
  readonly #mark = createMark();
  readonly #resumed = new Wakeup();
  readonly #ready = Promise.withResolvers<Duplex | undefined>();
  #exec = "";
  #size: TerminalSize;
  #isPaused = false;
  #isEnding = false;
  #inputQueue: Promise<void> = Promise.resolve();

  constructor(options: ContainerProgramOptions, events: ProgramEvents) {
    this.#options = options;
    this.#events = events;
    this.#size = options.size;
    this.exited = this.#run();
  }

  readonly gate = {
    hold: (): void => {
      this.#isPaused = true;
    },
    release: (): void => {
      this.#isPaused = false;
      this.#resumed.wake();
    },
  };

  write(data: string | Uint8Array): void {
    const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data;
    this.#inputQueue = this.#inputQueue
      .then(async () => (await this.#ready.promise)?.write(bytes))
      .catch(() => {})
      .then(() => this.#events.drained());
  }

  /** Resizes in order with the input; only the last of several pending sizes is applied. */
  resize(size: TerminalSize): void {
    this.#size = size;
    this.#inputQueue = this.#inputQueue
      .then(async () => {
        if ((await this.#ready.promise) && this.#size === size) await this.#sendSize();
      })
      .catch(() => {});
  }

  async end(): Promise<void> {
    this.#isEnding = true;
    const stream = await this.#ready.promise;
    if (!stream) return;
    await this.#sendSignal("SIGHUP");
    stream.reset("The terminal has ended.");
    this.gate.release();
  }

  signal(name: NodeJS.Signals): void {
    void this.#ready.promise.then((stream) => stream && this.#sendSignal(name));
  }

  async exitCode(): Promise<number | null> {
    return this.#exec === "" ? null : loadExitCode(this.#options.engine, this.#exec);
  }

  async #sendSignal(name: NodeJS.Signals): Promise<void> {
    try {
      const { container, user } = this.#options;
      await startInBackground(this.#options, { container, user, command: buildSignalCommand(this.#mark, name) });
    } catch (error) {
      log("daemon").debug("could not send {name} to a terminal in a container: {error}", { name, error });
    }
  }

  release(): void {
    void this.#ready.promise.then((stream) => stream?.reset("The terminal has ended."));
  }

  /** Runs the program from its start to the last byte of output. Never rejects. */
  async #run(): Promise<void> {
    try {
      const stream = await this.#start();
      // Input waits for the resize: a program that responds to a line must see the terminal's real size.
      await this.#sendSize().catch(() => {});
      this.#ready.resolve(stream);
      if (this.#isEnding) return;
      for await (const chunk of stream) {
        this.#events.output(chunk);
        while (this.#isPaused) await this.#resumed.wait();
      }
    } catch (error) {
      if (this.#exec === "" && !this.#isEnding) {
        this.#events.output(new TextEncoder().encode(`${(error as Error).message}\r\n`));
      }
    } finally {
      this.#ready.resolve(undefined);
      this.#events.closed();
    }
  }

  /** Starts the program and returns its stream: the engine upgrades the HTTP connection to the program's stream. */
  async #start(): Promise<Duplex> {
    const { command, engine, clock, container, user, env = {} } = this.#options;
    const program = {
      container,
      user,
      command: buildShellCommand(command),
      env: { TERM: "xterm-256color", COLORTERM: "truecolor", ...env, ...toMarkVariable(this.#mark) },
    };
    const exec = await createExec({ engine, clock }, program, { attached: true, tty: true });
    const stream = await attachExec({ engine, clock }, exec, true);
    this.#exec = exec;
    return stream;
  }

  async #sendSize(): Promise<void> {
    const { height, width } = this.#size;
    await (await this.#options.engine.call("POST", `/exec/${this.#exec}/resize?h=${height}&w=${width}`)).text();
  }
}
