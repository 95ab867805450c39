// One session of an SSH client: first its settings (variables, terminal, SSH agent), and then a shell, a command, or SFTP. An exception
// in a handler would end the client's whole connection, so handlers never throw. [WN-1] .. [WN-3]
import { homedir } from "node:os";
import type ssh2 from "ssh2";
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { readPasswordFile } from "#base/system/system-user.ts";
import type { ReportEnd } from "../connection/connection-reports.ts";
import type { ContainerEngine } from "../containers/engine.ts";
import type { Environment } from "../environment.ts";
import type { ProcessGroups } from "../scripts/groups.ts";
import { findShell } from "../shell.ts";
import { buildTerminalEnvironment } from "../terminal/sessions.ts";
import type { AgentSocket } from "./agent-socket.ts";
import { DEFAULT_EXIT_CODE } from "./exit.ts";
import { loadMessageOfTheDay } from "./motd.ts";
import { runInContainerPiped, runOnContainerTerminal } from "./run-container.ts";
import { runPiped } from "./run-piped.ts";
import { runOnTerminal, toTerminalSize } from "./run-terminal.ts";
import type { Running } from "./running.ts";
import { SESSION_TYPE_VARIABLES, type SessionKind, toSessionKind } from "./session-counts.ts";
import { serveSftp } from "./sftp/sftp.ts";
import type { X11Display, X11Request } from "./x11.ts";

/** Returns the name of the daemon's user, from the password file or else from the environment (WN-1). */
const getUserName = (env: Readonly<Record<string, string>>): string => {
  const uid = String(process.getuid?.() ?? -1);
  for (const line of readPasswordFile().split("\n")) {
    const [name, , id] = line.split(":");
    if (name && id === uid) return name;
  }
  return env.USER || env.LOGNAME || "user";
};

export type SessionOptions = {
  client: ssh2.Connection;
  clock: Clock;
  groups: ProcessGroups;
  /** The environment and folder of the workspace's programs. */
  env: Environment;
  directory: string;
  /** The file with the message of the day; empty for none. */
  motd: string;
  /** Returns the workspace's container engine; undefined if the workspace has none. */
  engine(): ContainerEngine | undefined;
  /** Returns a socket that forwards to the client's SSH agent; undefined if that is not possible. */
  forwardAgent(): Promise<AgentSocket | undefined>;
  /** Returns a display that forwards to the client; undefined if that is not possible. */
  forwardX11(request: X11Request, env: Environment): Promise<X11Display | undefined>;
  /** Counts a session of this kind. The returned function is called when the session ends, possibly more than once. */
  countSession(kind: SessionKind): ReportEnd;
  /** Called when input is typed into its terminal. */
  onTyped(): void;
};

const MAX_VARIABLES = 256;
/** Variables that select a container and a user in it; they are not passed to programs. */
const CONTAINER_VARIABLES = ["SLIPWAY_CONTAINER", "CODER_CONTAINER"];
const USER_VARIABLES = ["SLIPWAY_CONTAINER_USER", "CODER_CONTAINER_USER"];

type Terminal = { size: { height: number; width: number }; term: string };

export const serveSession = (session: ssh2.Session, options: SessionOptions): void => {
  const { env, directory, clock, groups } = options;
  const shell = findShell(env);
  const clientVariables = new Map<string, string>();
  const target = { container: "", user: "" };
  let kind: SessionKind = "ssh";
  let terminal: Terminal | undefined;
  let agent: Promise<AgentSocket | undefined> | undefined;
  let display: Promise<X11Display | undefined> | undefined;
  let running: Running | undefined;

  /** Starts the session inside the container that the client has selected. */
  const startInContainer = (channel: ssh2.ServerChannel, command: string): void => {
    const uncount = options.countSession(kind);
    channel.on("error", () => {});
    for (const end of ["finish", "close"]) channel.once(end, () => uncount(CLIENT_LEFT_REASON, DEFAULT_EXIT_CODE));
    const engine = options.engine();
    if (!engine) {
      refuseChannel(channel, "The workspace has no container engine.");
      return;
    }
    const run = {
      channel,
      clock,
      engine,
      ...target,
      command,
      env: Object.fromEntries(clientVariables),
      exited: uncount,
    };
    running = terminal ? runOnContainerTerminal(run, terminal.size, terminal.term) : runInContainerPiped(run);
    if (terminal) channel.on("data", options.onTyped);
  };

  const startLocal = async (
    channel: ssh2.ServerChannel,
    command: readonly string[],
    isLogin: boolean,
  ): Promise<void> => {
    const uncount = options.countSession(kind);
    channel.on("error", () => {});
    const [socket, x11Display] = await Promise.all([agent, display]);
    const onChannelEnd = (): void => {
      uncount(CLIENT_LEFT_REASON, DEFAULT_EXIT_CODE);
      x11Display?.close();
    };
    // "finish" is the end of our side: a client that has read the exit code may disconnect without closing the channel.
    channel.once("finish", onChannelEnd);
    channel.once("close", onChannelEnd);
    if (channel.destroyed) onChannelEnd();
    if (isLogin && terminal) channel.write(await loadMessageOfTheDay(options.motd, env.HOME ?? homedir()));
    const username = getUserName(env);
    const programEnv = {
      USER: username,
      LOGNAME: username,
      HOME: env.HOME ?? homedir(),
      SHELL: shell,
      ...env,
      ...(socket ? { SSH_AUTH_SOCK: socket.path } : {}),
      ...(x11Display ? { DISPLAY: x11Display.name } : {}),
      ...Object.fromEntries(clientVariables),
    };
    try {
      const common = { channel, command, directory, clock, groups, exited: uncount };
      if (terminal) {
        const terminalEnv = { ...buildTerminalEnvironment(programEnv, shell), TERM: terminal.term };
        running = runOnTerminal({ ...common, env: terminalEnv, size: terminal.size });
        channel.on("data", options.onTyped);
      } else running = runPiped({ ...common, env: programEnv });
    } catch (error) {
      log("daemon").warn("could not start an SSH session: {error}", { error });
      refuseChannel(channel, (error as Error).message);
    }
  };

  session.on("env", (accept, reject, { key, val }: { key: string; val: string }) => {
    if (SESSION_TYPE_VARIABLES.includes(key)) kind = toSessionKind(val);
    else if (CONTAINER_VARIABLES.includes(key)) target.container = val;
    else if (USER_VARIABLES.includes(key)) target.user = val;
    else if (clientVariables.size < MAX_VARIABLES && /^[^=\0]+$/.test(key) && !val.includes("\0"))
      clientVariables.set(key, val);
    else {
      reject?.();
      return;
    }
    accept?.();
  });
  session.on("pty", (accept, _reject, info) => {
    // The type definitions omit the terminal's name.
    const { term } = info as { term?: string };
    terminal = { size: toTerminalSize(info), term: term || "xterm-256color" };
    accept?.();
  });
  session.on("window-change", (accept, _reject, info) => {
    if (info.cols > 0 && info.rows > 0) running?.resize?.(toTerminalSize(info));
    accept?.();
  });
  session.on("signal", (accept, _reject, { name }) => {
    running?.signal(`SIG${name}` as NodeJS.Signals);
    accept?.();
  });
  session.on("auth-agent", (accept, reject) => {
    agent = options.forwardAgent();
    void agent.then((socket) => (socket ? accept?.() : reject?.()));
  });
  session.on("x11", (accept, reject, { single, protocol, cookie, screen }) => {
    const x11Request = { single, protocol, cookie: String(cookie), screen };
    display ??= options.forwardX11(x11Request, { HOME: homedir(), ...env });
    void display.then((one) => (one ? accept?.() : reject?.()));
  });
  session.on("shell", (accept) =>
    target.container === "" ? void startLocal(accept(), [shell, "-l"], true) : startInContainer(accept(), ""),
  );
  session.on("exec", (accept, _reject, { command }) =>
    target.container === ""
      ? void startLocal(accept(), buildCommand(command, shell), false)
      : startInContainer(accept(), command),
  );
  session.on("subsystem", (accept, reject, { name }) => {
    if (name !== "sftp") {
      reject?.();
      return;
    }
    const channel = accept();
    if (target.container !== "") {
      // Serving the workspace's files instead would be misleading.
      channel.on("error", () => {});
      refuseChannel(channel, "SFTP is not available in containers");
      channel.close();
      return;
    }
    const uncount = options.countSession(kind);
    channel.once("close", () => uncount(""));
    void serveSftp(channel, { directory, home: env.HOME ?? homedir() });
  });
};

/** Reported if the client disconnected before the program ended. */
const CLIENT_LEFT_REASON = "the client disconnected";

/** The exit code that shells return for a program that cannot be run. */
const CANNOT_START_CODE = 126;

const refuseChannel = (channel: ssh2.ServerChannel, reason: string): void => {
  channel.stderr.write(`slipway: ${reason}\n`);
  channel.exit(CANNOT_START_CODE);
  channel.end();
};

/**
 * Returns the program and arguments for a command. A first line with `#!` names the program that runs the other lines (facts/tailnet-peer
 * 7).
 */
export const buildCommand = (command: string, shell: string): string[] => {
  const [, line, script = ""] = /^#!([^\n]+)\n([\s\S]*)$/.exec(command) ?? [];
  const [program, ...args] = line?.trim().split(/\s+/) ?? [];
  return program === undefined ? [shell, "-c", command] : [program, ...args, "-c", script];
};
