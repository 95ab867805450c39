// Terminals that the workspace's own program `screen` keeps (`backend_type` of facts/platform 5.6, rules TM-14, TM-15). Their programs run
// under a process of screen and not under the daemon: they outlive a daemon that is killed, and the next one shows them again.
import { lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { pause } from "#base/retry.ts";
import { allProcesses, endProcesses } from "./end.ts";
import { type LocalProgramOptions, type ProgramEvents, startProgram, type TerminalProgram } from "./program.ts";

/** No key of its own, so that every key reaches the program; no messages; what scrolls away stays in the client's own history. */
const SETTINGS = `startup_message off
vbell off
deflogin off
defutf8 on
term screen-256color
termcapinfo xterm* ti@:te@
escape ""
`;

/** Screen takes its socket away just after its last display has ended. */
const LAST_MS = 1_000;
const LOOK_AGAIN_MS = 20;

export class Screens {
  readonly #clock: Clock;
  /** Where screen has its sockets. The path of a socket has at most 107 bytes, hence the short names. */
  readonly #folder: string;

  /** A daemon that comes after another finds its screens by the agent's id. */
  constructor({ clock, agent_id }: { clock: Clock; agent_id: string }) {
    this.#clock = clock;
    this.#folder = join(tmpdir(), `slipway-screen-${shortName(agent_id)}`);
  }

  /** Runs the command on the screen of this terminal, or shows the screen again when there is one. Throws, in words, where it cannot. */
  start(terminal: string, options: LocalProgramOptions, events: ProgramEvents): TerminalProgram {
    const screen = process.platform === "linux" ? Bun.which("screen", { PATH: options.env.PATH ?? "" }) : null;
    if (screen === null) throw new Error("This workspace has no program `screen`: open the terminal as `buffered`.");
    this.#makeFolder();
    const name = shortName(terminal);
    const settings = join(this.#folder, "settings");
    writeFileSync(settings, SETTINGS);
    // Of one who has started the daemon inside a screen.
    const { STY, WINDOW, ...rest } = options.env;
    const program = startProgram(
      {
        ...options,
        command: [screen, "-q", "-U", "-c", settings, "-S", name, "-d", "-RR", ...options.command],
        env: { ...rest, SCREENDIR: this.#folder },
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
        void this.#endIfOver(name);
      },
    };
  }

  /** The display has ended: so has the command, unless another daemon of this agent shows the screen now. */
  async #endIfOver(name: string): Promise<void> {
    const until = this.#clock.monotonic() + LAST_MS;
    while (this.#names().includes(name)) {
      if (this.#clock.monotonic() >= until) return;
      await pause(this.#clock, LOOK_AGAIN_MS);
    }
    await this.#end(name);
  }

  /** Ends the screens of an earlier daemon that nobody has return to; `shown` are the terminals there are. */
  async endOthers(shown: Iterable<string>): Promise<void> {
    const kept = new Set([...shown].map(shortName));
    await Promise.all(this.#names().map((name) => (kept.has(name) ? undefined : this.#end(name))));
  }

  /** Ends all, and takes their folder away. */
  async endAll(): Promise<void> {
    if (!this.#isOurs()) return;
    await this.endOthers([]);
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Programs know the screen they run on by `STY`; its own process is the number in the name of the socket. */
  #end(name: string): Promise<void> {
    return endProcesses(
      () => (allProcesses() ?? []).filter((pid) => isOn(pid, name) || isKeeper(pid, this.#folder, name)),
      this.#clock,
    );
  }

  #names(): string[] {
    if (!this.#isOurs()) return [];
    return readdirSync(this.#folder).flatMap((socket) => socket.match(/^\d+\.(.+)$/)?.[1] ?? []);
  }

  /** The folder for temporary files is everyone's: what another user has put there is not used. */
  #makeFolder(): void {
    mkdirSync(this.#folder, { mode: 0o700, recursive: true });
    if (!this.#isOurs()) throw new Error(`${this.#folder} is somebody else's: terminals of \`screen\` cannot be kept.`);
  }

  #isOurs(): boolean {
    const found = lstatSync(this.#folder, { throwIfNoEntry: false });
    return found?.isDirectory() === true && found.uid === process.getuid?.() && (found.mode & 0o077) === 0;
  }
}

/** What another daemon of this agent names the same: any text as 32 letters and digits. */
const shortName = (text: string): string => new Bun.CryptoHasher("sha256").update(text).digest("hex").slice(0, 32);

const isOn = (pid: number, name: string): boolean => {
  const [screen] = readEnvironment(pid).match(/(?<=\0STY=)[^\0]*/) ?? [""];
  return screen.endsWith(`.${name}`);
};

const isKeeper = (pid: number, folder: string, name: string): boolean =>
  lstatSync(join(folder, `${pid}.${name}`), { throwIfNoEntry: false }) !== undefined &&
  readEnvironment(pid).includes(`\0SCREENDIR=${folder}\0`);

/** Empty for one that has ended, and for those of other users. */
const readEnvironment = (pid: number): string => {
  try {
    return `\0${readFileSync(`/proc/${pid}/environ`, "latin1")}`;
  } catch {
    return "";
  }
};
