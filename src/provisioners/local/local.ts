// Runs workspaces as processes on this machine. The daemon is this same program. It runs in its own session, in a folder of the data
// directory, and outlives the server. Its user is the one in the setting `local_workspace_user`, or else the server's user, which is
// allowed only where it is acceptable (docs/spec/design.md 8).
import { closeSync, openSync } from "node:fs";
import { userInfo } from "node:os";
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { pause } from "#base/retry.ts";
import { getMemoryFolder, removeMemoryFolder } from "#base/secrets/memory-folder.ts";
import { APPEND_FLAGS } from "#base/system/regular-file.ts";
import { findSystemUser, isUsableShell } from "#base/system/system-user.ts";
import {
  ProvisionError,
  type Provisioner,
  type ProvisionRequest,
  type ProvisionResult,
  type Report,
} from "../provisioner.ts";
import { reportRepositories } from "../repository/report.ts";
import { type DaemonRecord, WorkspaceFolder } from "./folder.ts";
import { LocalHomes } from "./homes.ts";
import { findMark, findProcessesAtHome, isAlive, sendSignal } from "./process-table.ts";
import { Supervisor } from "./supervisor.ts";
import { findLocalUser, type LocalUser, LocalUserError } from "./user.ts";

export type LocalOptions = {
  /** <data_dir>/workspaces */
  readonly root: string;
  readonly clock: Clock;
  readonly accessUrl: () => URL;
  /** The program and its arguments; defaults to this program with the verb `agent`. */
  readonly command?: readonly string[] | undefined;
  /** The server's environment, of which only PATH, LANG and TZ are passed to a workspace. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** The user that daemons run as; defaults to the server's own. */
  readonly user?: string | undefined;
  /** Why workspaces cannot be started on this machine. If set, existing workspaces can still be stopped and deleted. */
  readonly refusal?: string | undefined;
  /** How long a daemon waits for an unreachable server before it ends; defaults to a day. */
  readonly orphanTimeoutMs?: number;
  /** How long a daemon's stop scripts may take before all processes are killed. */
  readonly graceMs?: number;
};

const GRACE_MS = 30_000;
const POLL_MS = 50;
const ORPHAN_TIMEOUT_MS = 86_400_000;
/** Maximum number of checks whether a killed process has ended. */
const MAX_KILL_CHECKS = 200;
const DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

export class LocalProvisioner implements Provisioner {
  readonly name = "local";
  readonly homes: LocalHomes;
  readonly #options: LocalOptions;
  readonly #supervisor: Supervisor;

  constructor(options: LocalOptions) {
    this.#options = options;
    this.homes = new LocalHomes(options.root, options.clock);
    this.#supervisor = new Supervisor({
      clock: options.clock,
      isRunning: (id) => {
        const record = new WorkspaceFolder(options.root, id).readRecord();
        return record && isAlive(record);
      },
      restart: (id) => {
        const folder = new WorkspaceFolder(options.root, id);
        const record = folder.readRecord();
        if (record) this.#startDaemon(folder, record.token);
      },
    });
  }

  async run(request: ProvisionRequest, report: Report, signal: AbortSignal): Promise<ProvisionResult> {
    const { transition, workspace } = request;
    if (transition === "start") this.#requireStartable();
    const folder = new WorkspaceFolder(this.#options.root, workspace.id);
    const runStep = async (action: string, message: string, work: () => void | Promise<void>): Promise<void> => {
      signal.throwIfAborted();
      const started_at = this.#options.clock.now();
      report.log("info", toStage(transition), message);
      await work();
      const ended_at = this.#options.clock.now();
      report.timing({ action, resource: workspace.name, source: "local", stage: "apply", started_at, ended_at });
    };
    if (request.claimed) {
      await runStep("claim", "Giving the running workspace to its owner.", () => this.#handOver(folder));
      this.#supervisor.watch(workspace.id);
      return { state: request.state };
    }
    this.#supervisor.release(workspace.id);
    if (folder.readRecord())
      await runStep("stop", "Stopping the workspace's processes.", () => this.#end(folder, signal));
    // A server that is killed immediately after the spawn leaves a daemon without a record.
    else await this.#kill(folder);
    removeMemoryFolder(getMemoryFolder(workspace.id));
    await this.homes.settle(workspace.id);
    const { restore } = request;
    if (restore) {
      await runStep("restore", "Restoring the workspace's files from the snapshot.", async () => {
        const user = this.#requireUser();
        // A copy of a subvolume becomes the home itself. Creating no home first makes many forks cheap.
        if (this.homes.isSubvolume(restore)) folder.prepare();
        else folder.create(user);
        await this.homes.restore(workspace.id, restore, signal);
        folder.create(user);
      });
    }
    if (request.keeps_files) {
      report.log("info", toStage(transition), "The workspace's files stay in the trash.");
      folder.removeToken();
      return { state: null, kept_bytes: await this.homes.measure(workspace.id) };
    }
    if (transition === "delete") await runStep("delete", "Removing the workspace's folder.", () => folder.remove());
    if (transition !== "start") return { state: null };
    const [agent, ...others] = request.agents;
    if (!agent || others.length > 0) throw new ProvisionError("A local workspace has exactly one agent.");
    reportRepositories(request, report, toStage(transition));
    await runStep("create", "Starting the workspace's daemon.", () => this.#startDaemon(folder, agent.token));
    if (signal.aborted) {
      await this.#kill(folder);
      signal.throwIfAborted();
    }
    this.#supervisor.watch(workspace.id);
    return { state: JSON.stringify({ pid: folder.readRecord()?.pid }) };
  }

  /** Runs the checks of a start without creating a folder or starting anything. */
  async plan({ manifest }: ProvisionRequest, report: Report, signal: AbortSignal): Promise<undefined> {
    signal.throwIfAborted();
    this.#requireStartable();
    const agents = manifest.resources.flatMap((resource) => resource.agents ?? []);
    if (agents.length !== 1) throw new ProvisionError("A local workspace has exactly one agent.");
    report.log("info", "Planning", "The workspace's daemon would be started on this machine.");
  }

  getRestartAttempt(workspace_id: string): number | undefined {
    return this.#supervisor.getRestartAttempt(workspace_id);
  }

  async halt(workspace_id: string): Promise<void> {
    this.#supervisor.release(workspace_id);
    await this.#kill(new WorkspaceFolder(this.#options.root, workspace_id));
  }

  stop(): void {
    this.#supervisor.stop();
  }

  /** Restarts the daemons that died while the server was down, for example because of a reboot, and watches all daemons. */
  async recover(workspaces: readonly { id: string; state: string | null }[]): Promise<void> {
    if (this.#options.refusal !== undefined) {
      const count = workspaces.length;
      log("local").warn("{count} local workspaces from before are still there; stop them: {reason}", {
        count,
        reason: this.#options.refusal,
      });
      return;
    }
    for (const { id } of workspaces) {
      try {
        const folder = new WorkspaceFolder(this.#options.root, id);
        const record = folder.readRecord();
        if (!record) continue;
        this.#supervisor.watch(id);
        if (isAlive(record)) continue;
        this.#startDaemon(folder, record.token);
        log("local").info("workspace {id} was not running any more and has been started again", { id });
      } catch (error) {
        log("local").error("workspace {id} cannot be started again: {error}", { id, error });
      }
    }
  }

  /** Throws ProvisionError if the configured user is unusable, instead of falling back to the server's user. */
  #requireUser(): LocalUser | undefined {
    const { user } = this.#options;
    try {
      return user === undefined ? undefined : findLocalUser(user);
    } catch (error) {
      throw error instanceof LocalUserError ? new ProvisionError(error.message) : error;
    }
  }

  async findProblem(): Promise<string | undefined> {
    return this.#options.refusal;
  }

  #requireStartable(): void {
    if (this.#options.refusal !== undefined) throw new ProvisionError(this.#options.refusal);
    this.#requireUser();
  }

  /** Keeps the daemon of a claimed workspace, because it already has its token. Restarts it if it has died. */
  #handOver(folder: WorkspaceFolder): void {
    const record = folder.readRecord();
    if (!record) throw new ProvisionError("The prebuilt workspace no longer exists.");
    if (!isAlive(record)) this.#startDaemon(folder, record.token);
  }

  #startDaemon(folder: WorkspaceFolder, token: string): void {
    const user = this.#requireUser();
    folder.create(user);
    folder.writeToken(token, user);
    const [program = "", ...args] = this.#options.command ?? getOwnCommand();
    const logFile = openSync(folder.logFile, APPEND_FLAGS, 0o600);
    try {
      const child = Bun.spawn([program, ...args], {
        // In the home, Bun would read a bunfig.toml of the user.
        cwd: folder.path,
        env: this.#buildEnvironment(folder, user),
        ...(user ? { uid: user.uid, gid: user.gid } : {}),
        stdin: "ignore",
        stdout: logFile,
        stderr: logFile,
        detached: true,
      });
      child.unref();
      const mark = findMark(child.pid);
      if (!mark) throw new ProvisionError(`The workspace's daemon exited immediately. See ${folder.logFile}.`);
      folder.writeRecord({ ...mark, token });
    } catch (error) {
      if (error instanceof ProvisionError) throw error;
      throw new ProvisionError(`The workspace's daemon cannot be started: ${(error as Error).message}`);
    } finally {
      closeSync(logFile);
    }
  }

  /** Passes on only the parts of the server's environment that a shell needs. */
  #buildEnvironment(folder: WorkspaceFolder, user?: LocalUser): Record<string, string> {
    const { accessUrl, environment = {}, orphanTimeoutMs = ORPHAN_TIMEOUT_MS } = this.#options;
    const { name, shell } = user ??
      findSystemUser(process.geteuid?.() ?? 0) ?? { name: userInfo().username, shell: "" };
    return {
      PATH: environment.PATH || DEFAULT_PATH,
      LANG: environment.LANG || "C.UTF-8",
      ...(environment.TZ ? { TZ: environment.TZ } : {}),
      HOME: folder.home,
      USER: name,
      LOGNAME: name,
      SHELL: isUsableShell(shell) ? shell : "/bin/sh",
      TERM: "xterm-256color",
      SLIPWAY_AGENT_URL: accessUrl().href,
      SLIPWAY_AGENT_TOKEN_FILE: folder.tokenFile,
      SLIPWAY_AGENT_FOLDER: folder.path,
      // Makes `slipway stat` measure only the workspace's processes and home.
      SLIPWAY_SHARES_MACHINE: "true",
      ...(user ? {} : { SLIPWAY_SHARES_USER: "true" }),
      SLIPWAY_AGENT_ORPHAN_TIMEOUT: `${orphanTimeoutMs}ms`,
    };
  }

  /** Lets the daemon run its stop scripts, then ends all processes of the workspace. */
  async #end(folder: WorkspaceFolder, signal: AbortSignal): Promise<void> {
    const { clock, graceMs = GRACE_MS } = this.#options;
    const record = folder.readRecord();
    if (record && isAlive(record)) {
      sendSignal(record, "SIGTERM");
      const deadlineMs = clock.monotonic() + graceMs;
      while (isAlive(record) && clock.monotonic() < deadlineMs && !signal.aborted) await pause(clock, POLL_MS);
      signal.throwIfAborted();
    }
    await this.#kill(folder, record);
  }

  async #kill(folder: WorkspaceFolder, record: DaemonRecord | undefined = folder.readRecord()): Promise<void> {
    if (record && isAlive(record)) {
      sendSignal(record, "SIGKILL", true);
      for (let round = 0; isAlive(record) && round < MAX_KILL_CHECKS; round++)
        await pause(this.#options.clock, POLL_MS);
    }
    // Terminals and services have their own sessions, so their processes are found by HOME. The search is repeated, because a process may
    // start another before it is killed.
    for (let round = 0; round < MAX_KILL_CHECKS; round++) {
      const remaining = findProcessesAtHome(folder.home);
      if (remaining.length === 0) break;
      for (const process of remaining) if (isAlive(process)) sendSignal(process, "SIGKILL");
      await pause(this.#options.clock, POLL_MS);
    }
    folder.removeRecord();
  }
}

const toStage = (transition: ProvisionRequest["transition"]): string =>
  ({ start: "Starting", stop: "Stopping", delete: "Deleting" })[transition];

/** Returns this program as it runs now: the compiled binary, or the runtime with the source. */
const getOwnCommand = (): string[] =>
  import.meta.path.startsWith("/$bunfs/") || import.meta.path.includes("~BUN")
    ? [process.execPath, "agent"]
    : [process.execPath, "--no-env-file", new URL("../../main.ts", import.meta.url).pathname, "agent"];
