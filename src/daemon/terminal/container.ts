// A program on a terminal inside a container, by the exec calls of the workspace's container engine (facts/platform 5.6, rules TM-11,
// TM-12). Output is read only as fast as the terminal's clients take it. What goes wrong at the start is shown on the terminal.
import type { Clock } from "#base/clock.ts";
import { uuid } from "#base/ids.ts";
import { log } from "#base/log.ts";
import type { Duplex } from "#src/wire/duplex.ts";
import { Wakeup } from "#src/wire/wakeup.ts";
import type { ContainerEngine } from "../containers/engine.ts";
import { attachExec } from "../containers/exec.ts";
import type { ProgramEvents, TerminalProgram, TerminalSize } from "./program.ts";

export type ContainerProgramOptions = {
  engine: ContainerEngine;
  /** Name or id. */
  container: string;
  /** Empty: the container's own. */
  user: string;
  /** Empty: a login shell. */
  command: string;
  size: TerminalSize;
  clock: Clock;
};

// The user's own shell where it is known, else the one that is always there; a command runs through it.
const SHELL = `s=$( (getent passwd "$(id -u)" || grep "^[^:]*:[^:]*:$(id -u):" /etc/passwd) 2>/dev/null | head -n 1 | cut -d: -f7)
[ -x "$s" ] || s=/bin/sh
if [ $# -gt 0 ]; then exec "$s" -c "$1"; else exec "$s" -l; fi`;

/** Marks everything that was started on one terminal: an engine has no call that ends it. */
const MARK = "SLIPWAY_TERMINAL";
const END = `for p in /proc/[0-9]*; do
if tr '\\0' '\\n' < "$p/environ" 2>/dev/null | grep -qx "$1"; then kill -s HUP "\${p#/proc/}" 2>/dev/null; kill -s CONT "\${p#/proc/}" 2>/dev/null; fi
done`;

/** Starts it in the background; what is typed meanwhile waits. */
export const startInContainer = (options: ContainerProgramOptions, events: ProgramEvents): TerminalProgram =>
  new ContainerProgram(options, events);

class ContainerProgram implements TerminalProgram {
  readonly exited: Promise<unknown>;
  readonly #options: ContainerProgramOptions;
  readonly #events: ProgramEvents;
  readonly #mark = `${MARK}=${uuid()}`;
  readonly #goOn = new Wakeup();
  readonly #ready = Promise.withResolvers<Duplex | undefined>();
  #exec = "";
  #size: TerminalSize;
  #held = false;
  #ended = false;
  #writing: Promise<void> = Promise.resolve();

  constructor(options: ContainerProgramOptions, events: ProgramEvents) {
    this.#options = options;
    this.#events = events;
    this.#size = options.size;
    this.exited = this.#run();
  }

  readonly gate = {
    hold: (): void => {
      this.#held = true;
    },
    release: (): void => {
      this.#held = false;
      this.#goOn.ring();
    },
  };

  write(data: string): void {
    this.#writing = this.#writing
      .then(async () => (await this.#ready.promise)?.write(new TextEncoder().encode(data)))
      .catch(() => {})
      .then(() => this.#events.drained());
  }

  /** In order with what is typed; of several sizes that wait only the last one counts. */
  resize(size: TerminalSize): void {
    this.#size = size;
    this.#writing = this.#writing
      .then(async () => {
        if ((await this.#ready.promise) && this.#size === size) await this.#resize();
      })
      .catch(() => {});
  }

  async end(): Promise<void> {
    this.#ended = true;
    const stream = await this.#ready.promise;
    if (!stream) return;
    const { engine } = this.#options;
    try {
      const exec = await this.#create(["/bin/sh", "-c", END, "sh", this.#mark], false);
      await (await engine.call("POST", `/exec/${exec}/start`, { Detach: true, Tty: false })).text();
    } catch (error) {
      log("daemon").debug("a terminal in a container was not ended: {error}", { error });
    }
    stream.reset("The terminal has ended.");
    this.gate.release();
  }

  release(): void {
    void this.#ready.promise.then((stream) => stream?.reset("The terminal has ended."));
  }

  /** From the start to the last byte. Never rejects. */
  async #run(): Promise<void> {
    try {
      const stream = await this.#start();
      // What is typed waits for it: a program that answers a line finds the terminal as large as the person sees it.
      await this.#resize().catch(() => {});
      this.#ready.resolve(stream);
      if (this.#ended) return;
      for await (const chunk of stream) {
        this.#events.output(chunk);
        while (this.#held) await this.#goOn.wait();
      }
    } catch (error) {
      if (this.#exec === "" && !this.#ended) {
        this.#events.output(new TextEncoder().encode(`${(error as Error).message}\r\n`));
      }
    } finally {
      this.#ready.resolve(undefined);
      this.#events.closed();
    }
  }

  /** The engine hands over the connection itself once the program runs. */
  async #start(): Promise<Duplex> {
    const { command, engine, clock } = this.#options;
    const exec = await this.#create(["/bin/sh", "-c", SHELL, "sh", ...(command === "" ? [] : [command])], true);
    const stream = await attachExec({ engine, clock }, exec, true);
    this.#exec = exec;
    return stream;
  }

  async #create(command: readonly string[], tty: boolean): Promise<string> {
    const { engine, container, user } = this.#options;
    const made = await engine.json<{ Id: string }>("POST", `/containers/${encodeURIComponent(container)}/exec`, {
      AttachStdin: tty,
      AttachStdout: tty,
      AttachStderr: tty,
      Tty: tty,
      Cmd: command,
      ...(user === "" ? {} : { User: user }),
      ...(tty ? { Env: ["TERM=xterm-256color", "COLORTERM=truecolor", this.#mark] } : {}),
    });
    return encodeURIComponent(made.Id);
  }

  async #resize(): Promise<void> {
    const { height, width } = this.#size;
    await (await this.#options.engine.call("POST", `/exec/${this.#exec}/resize?h=${height}&w=${width}`)).text();
  }
}
