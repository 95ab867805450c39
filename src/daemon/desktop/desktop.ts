// The desktop of a workspace: a VNC server that the template names, or one that the daemon starts on first use (facts/chats 2.12, rules
// DT-1, DT-2). Only this user can reach a desktop that the daemon started: through a socket in a private folder, with the display's key.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { AppError } from "#base/errors.ts";
import { generateBytes } from "#base/ids.ts";
import { log } from "#base/log.ts";
import { pause } from "#base/retry.ts";
import { type Duplex, WireError } from "#src/wire/index.ts";
import { connectSocket, type SocketTarget } from "../connection/tunnel-socket.ts";
import type { Environment } from "../environment.ts";
import type { ProcessGroups } from "../scripts/groups.ts";
import { runProcess } from "../scripts/process.ts";
import {
  buildDisplayCommand,
  buildVncCommand,
  type DesktopKind,
  findDesktopKind,
  findSession,
  parseVncServer,
} from "./programs.ts";

export type DesktopOptions = { readonly clock: Clock; readonly groups: ProcessGroups; readonly env: Environment };

/** How long to wait for a display and its VNC server to start. */
const START_TIMEOUT_MS = 20_000;
const POLL_INTERVAL_MS = 50;

type Running = { readonly target: SocketTarget; readonly env: Environment };

export class Desktop {
  readonly #options: DesktopOptions;
  #running: Promise<Running> | undefined;
  /** Variables that programs need to use the display; empty while no desktop of this daemon is running. */
  env: Environment = {};

  constructor(options: DesktopOptions) {
    this.#options = options;
  }

  /** Connects to the VNC server, starting the desktop if necessary. Throws AppError with a readable message. */
  async connect(): Promise<Duplex> {
    const { clock, env } = this.#options;
    const configured = parseVncServer(env);
    try {
      const target = configured ?? (await this.#startDesktop()).target;
      return await connectSocket(target, clock);
    } catch (error) {
      // An AppError already has a readable message; connection failures are WireErrors.
      if (error instanceof AppError && !(error instanceof WireError)) throw error;
      throw desktopUnavailable(`Its VNC server cannot be reached: ${(error as Error).message}`);
    }
  }

  #startDesktop(): Promise<Running> {
    if (this.#running) return this.#running;
    const starting: Promise<Running> = this.#start(() => this.#clearRunning(starting));
    this.#running = starting;
    starting.catch(() => this.#clearRunning(starting));
    return starting;
  }

  #clearRunning(desktop: Promise<Running>): void {
    if (this.#running !== desktop) return;
    this.#running = undefined;
    this.env = {};
  }

  /** Calls `onEnd` when the display has ended. */
  async #start(onEnd: () => void): Promise<Running> {
    const kind = findDesktopKind(this.#options.env.PATH ?? "");
    if (!kind) throw desktopUnavailable("Neither Xvnc nor Xvfb with x11vnc is installed in the workspace.");
    const folder = mkdtempSync(join(tmpdir(), "slipway-desktop-"));
    const files = { socket: join(folder, "vnc"), authority: join(folder, "authority") };
    writeFileSync(files.authority, toXauthority(generateBytes(16)), { mode: 0o600 });
    const cleanUp = (): void => {
      rmSync(folder, { recursive: true, force: true });
      onEnd();
    };
    const display = await this.#startDisplay(kind, files, cleanUp);
    const env = { DISPLAY: `:${display}`, XAUTHORITY: files.authority };
    if (kind === "xvfb") void this.#run(buildVncCommand(files, display), env, () => {}).catch(() => {});
    await this.#waitUntilReachable({ unix: files.socket });
    this.env = env;
    const session = findSession(this.#options.env);
    if (session) void this.#run(session, env, () => {}).catch(() => {});
    log("daemon").info("the desktop is display {display}", { display: env.DISPLAY });
    return { target: { unix: files.socket }, env };
  }

  /** Starts the X server, which prints its display number once it accepts programs. */
  #startDisplay(kind: DesktopKind, files: { socket: string; authority: string }, onEnd: () => void): Promise<string> {
    const { clock } = this.#options;
    return new Promise((resolve, reject) => {
      let stdout = "";
      const startTimer = clock.after(START_TIMEOUT_MS, () =>
        reject(desktopUnavailable("Its display did not start in time.")),
      );
      const onDisplayOutput = (bytes: Uint8Array): void => {
        stdout += new TextDecoder().decode(bytes);
        const number = /^(\d+)\n/.exec(stdout)?.[1];
        if (number !== undefined) resolve(number);
      };
      const onDisplayEnd = (): void => {
        startTimer.cancel();
        onEnd();
        reject(desktopUnavailable("Its display ended as soon as it was started."));
      };
      this.#run(buildDisplayCommand(kind, files), {}, onDisplayOutput).then(onDisplayEnd, onDisplayEnd);
    });
  }

  async #waitUntilReachable(target: SocketTarget): Promise<void> {
    const { clock } = this.#options;
    const deadline = clock.monotonic() + START_TIMEOUT_MS;
    for (;;) {
      const connection = await connectSocket(target, clock).catch(() => undefined);
      connection?.reset("It is there.");
      if (connection) return;
      if (clock.monotonic() > deadline) throw desktopUnavailable("Its VNC server did not start in time.");
      await pause(clock, POLL_INTERVAL_MS);
    }
  }

  async #run(command: readonly string[], extraEnv: Environment, onStdout: (bytes: Uint8Array) => void): Promise<void> {
    const { clock, groups, env } = this.#options;
    await runProcess({
      command,
      clock,
      groups,
      timeout_ms: 0,
      env: { ...env, ...extraEnv },
      directory: env.HOME ?? homedir(),
      onOutput: (from, bytes) => {
        if (from === "stdout") onStdout(bytes);
      },
    });
  }
}

const desktopUnavailable = (detail: string): AppError =>
  new AppError("internal", "The desktop of the workspace cannot be started.", { detail });

/** Returns an Xauthority file with one key for any display. */
const toXauthority = (key: Uint8Array): Uint8Array => {
  const name = new TextEncoder().encode("MIT-MAGIC-COOKIE-1");
  return Uint8Array.of(0xff, 0xff, 0, 0, 0, 0, 0, name.length, ...name, 0, key.length, ...key);
};
