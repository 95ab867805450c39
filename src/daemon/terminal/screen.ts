// Terminals kept by the workspace's own `screen` program (`backend_type` of facts/platform 5.6, rules TM-14, TM-15). The programs run under
// a screen process instead of the daemon. They survive when the daemon is killed, and the next daemon shows them again.
import { lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { pause } from "#base/retry.ts";
import { listProcessIds } from "../own-processes.ts";
import { endProcesses } from "./end.ts";
import { type LocalProgramOptions, type ProgramEvents, startProgram, type TerminalProgram } from "./program.ts";

/** There is no command key, so that every key reaches the program. There are no messages, and scrollback stays in the client's history. */
const SCREEN_SETTINGS = `startup_message off
vbell off
deflogin off
defutf8 on
term screen-256color
termcapinfo xterm* ti@:te@
escape ""
`;

/** How long to wait for screen to remove its socket after the last display has ended. */
const SOCKET_REMOVAL_TIMEOUT_MS = 1_000;
const POLL_INTERVAL_MS = 20;

export class Screens {
  readonly #clock: Clock;
  /** The folder of screen's sockets. Names are short because a socket path has at most 107 bytes. */
  readonly #folder: string;

  /** A restarted daemon finds its screens by the agent's ID. */
  constructor({ clock, agent_id }: { clock: Clock; agent_id: string }) {
    this.#clock = clock;
    this.#folder = join(tmpdir(), `slipway-screen-${hashName(agent_id)}`);
  }

  /** Runs the command on this terminal's screen, or attaches to an existing screen. Throws with a readable message. */
  start(terminal: string, options: LocalProgramOptions, events: ProgramEvents): TerminalProgram {
    const screen = process.platform === "linux" ? Bun.which("screen", { PATH: options.env.PATH ?? "" }) : null;
    if (screen === null) throw new Error("This workspace has no program `screen`: open the terminal as `buffered`.");
    this.#createFolder();
    const name = hashName(terminal);
    const settings = join(this.#folder, "settings");
    writeFileSync(settings, SCREEN_SETTINGS);
    // Removes the variables of a daemon that was itself started inside a screen.
    const { STY, WINDOW, ...env } = options.env;
    const program = startProgram(
      {
        ...options,
        command: [screen, "-q", "-U", "-c", settings, "-S", name, "-d", "-RR", ...options.command],
        env: { ...env, SCREENDIR: this.#folder },
      },
      events,
    );
    const { exited, gate, write, resize } = program;
    return {
      exited,
      gate,
      write,
      resize,
      end: async () => {
        await this.#end(name);
        await program.end();
      },
      release: () => {
        program.release();
        void this.#endAfterDisplay(name);
      },
    };
  }

  /** Handles the end of a display: the command has ended too, unless another daemon of this agent shows the screen now. */
  async #endAfterDisplay(name: string): Promise<void> {
    const deadlineMs = this.#clock.monotonic() + SOCKET_REMOVAL_TIMEOUT_MS;
    while (this.#listNames().includes(name)) {
      if (this.#clock.monotonic() >= deadlineMs) return;
      await pause(this.#clock, POLL_INTERVAL_MS);
    }
    await this.#end(name);
  }

  /** Ends the screens of an earlier daemon that were not reopened; `terminals`: the IDs of the current terminals. */
  async endOthers(terminals: Iterable<string>): Promise<void> {
    const keptNames = new Set([...terminals].map(hashName));
    await Promise.all(this.#listNames().map((name) => (keptNames.has(name) ? undefined : this.#end(name))));
  }

  /** Ends all screens and removes their folder. */
  async endAll(): Promise<void> {
    if (!this.#isOwnFolder()) return;
    await this.endOthers([]);
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Ends the programs of the screen, identified by `STY`, and its own process, whose ID is in the socket's name. */
  #end(name: string): Promise<void> {
    return endProcesses(
      () =>
        (listProcessIds() ?? []).filter((pid) => runsInScreen(pid, name) || isScreenProcess(pid, this.#folder, name)),
      this.#clock,
    );
  }

  #listNames(): string[] {
    if (!this.#isOwnFolder()) return [];
    return readdirSync(this.#folder).flatMap((socket) => socket.match(/^\d+\.(.+)$/)?.[1] ?? []);
  }

  /** Creates the folder. Rejects a folder of another user, because all users share the temp folder. */
  #createFolder(): void {
    mkdirSync(this.#folder, { mode: 0o700, recursive: true });
    if (!this.#isOwnFolder())
      throw new Error(`${this.#folder} belongs to another user: terminals of \`screen\` cannot be started.`);
  }

  #isOwnFolder(): boolean {
    const stats = lstatSync(this.#folder, { throwIfNoEntry: false });
    return stats?.isDirectory() === true && stats.uid === process.getuid?.() && (stats.mode & 0o077) === 0;
  }
}

/** Returns a name of 32 letters and digits, which is the same for every daemon of this agent. */
const hashName = (text: string): string => new Bun.CryptoHasher("sha256").update(text).digest("hex").slice(0, 32);

const runsInScreen = (pid: number, name: string): boolean => {
  const [screen] = readEnvironment(pid).match(/(?<=\0STY=)[^\0]*/) ?? [""];
  return screen.endsWith(`.${name}`);
};

const isScreenProcess = (pid: number, folder: string, name: string): boolean =>
  lstatSync(join(folder, `${pid}.${name}`), { throwIfNoEntry: false }) !== undefined &&
  readEnvironment(pid).includes(`\0SCREENDIR=${folder}\0`);

/** Returns an empty string for a process that has ended or belongs to another user. */
const readEnvironment = (pid: number): string => {
  try {
    return `\0${readFileSync(`/proc/${pid}/environ`, "latin1")}`;
  } catch {
    return "";
  }
};
