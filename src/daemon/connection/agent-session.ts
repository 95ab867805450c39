// Runs the activities of a daemon for its workspace, from the first manifest until the daemon ends: scripts, cron, metadata, app health,
// statistics, and the lifecycle states (rules DM-5, DM-16).
import { homedir } from "node:os";
import { delimiter } from "node:path";
import { log } from "#base/log.ts";
import { finishesWithin, pause, waitForAbort } from "#base/retry.ts";
import type { Manifest } from "#src/wire/gen/agent_pb.ts";
import { watchApps } from "../apps.ts";
import { type BinFolder, createBinFolder } from "../bin-folder.ts";
import { writeCodexConfig } from "../codex-config.ts";
import { WorkspaceContext } from "../context/context.ts";
import { WorkspaceMcp } from "../context/mcp.ts";
import { buildScriptEnvironment, type Environment, resolveFolder, toId } from "../environment.ts";
import { createGitHelpers, type GitHelpers } from "../git/helpers.ts";
import { Jobs } from "../jobs.ts";
import { MemoryKills } from "../memory-kills.ts";
import { ProcessGroups } from "../scripts/groups.ts";
import type { Lifecycle } from "../scripts/lifecycle.ts";
import type { Logs } from "../scripts/logs.ts";
import { collectMetadata } from "../scripts/metadata.ts";
import { ScriptRunner } from "../scripts/script-runner.ts";
import { runCron, runStartScripts, runStopScripts } from "../scripts/scripts.ts";
import { listSecretVariables, writeSecretFiles } from "../secret-files.ts";
import { watchSpace } from "../space.ts";
import { createTokenFile, type TokenFile } from "../token-file.ts";
import type { Reports } from "./reports.ts";
import { reportStats } from "./stats.ts";
import { type DaemonOptions, Reach } from "./tunnel-reach.ts";

export type AgentSessionOptions = DaemonOptions & {
  logs: Logs;
  reports: Reports;
  lifecycle: Lifecycle;
};

/** How long remaining processes may take to exit when the daemon ends. */
const GRACE_MS = 2_000;
/** How long to wait for the remaining output of processes that have exited. */
const FINAL_LOGS_TIMEOUT_MS = 1_000;
/** How long stop scripts may still run once the workspace's files no longer exist. */
const STOP_SCRIPTS_AFTER_GONE_MS = 5_000;

export class AgentSession {
  readonly #options: AgentSessionOptions;
  readonly #git: GitHelpers = createGitHelpers();
  readonly #bin: BinFolder = createBinFolder();
  readonly #token: TokenFile;
  readonly #groups: ProcessGroups;
  readonly #runner: ScriptRunner;
  readonly #mcp: WorkspaceMcp;
  readonly #context: WorkspaceContext;
  readonly #reach: Reach;
  readonly #stopping = new AbortController();
  #isStarting = true;
  /** The environment of programs that start from now on. Every program start reads this object, so it is changed in place. */
  readonly #programEnv: Record<string, string>;

  private constructor(options: AgentSessionOptions) {
    const { manifest, env, clock, logs, reports } = options;
    this.#options = options;
    this.#token = createTokenFile(options.token.value);
    writeSecretFiles(manifest, env);
    const programEnv = { ...this.#buildProgramEnv(manifest) };
    this.#programEnv = programEnv;
    writeCodexConfig(programEnv);
    this.#groups = new ProcessGroups({ clock, agent_id: toId(manifest.agentId) });
    this.#runner = new ScriptRunner({
      clock,
      env: programEnv,
      bin: this.#bin,
      directory: resolveFolder(manifest.directory, env),
      groups: this.#groups,
      logs,
      reports,
    });
    this.#mcp = new WorkspaceMcp({ clock, groups: this.#groups, env: programEnv });
    this.#context = new WorkspaceContext({
      connection: options.connection,
      clock,
      signal: this.#stopping.signal,
      mcp: this.#mcp,
      directory: resolveFolder(manifest.directory, env),
      home: env.HOME || homedir(),
      extra: listContextFolders(programEnv.SLIPWAY_CONTEXT_SOURCES ?? "", env),
    });
    this.#reach = new Reach({
      ...options,
      programs: programEnv,
      groups: this.#groups,
      context: this.#context,
      mcp: this.#mcp,
    });
  }

  /** Starts everything and returns immediately. */
  static begin(options: AgentSessionOptions): AgentSession {
    const session = new AgentSession(options);
    void session.#start();
    session.#watch();
    return session;
  }

  /** Returns true if the manifest is for this agent. */
  isForAgent({ agentId }: Manifest): boolean {
    return Buffer.compare(agentId, this.#options.manifest.agentId) === 0;
  }

  /** Ends everything without stop scripts or reports. Used when the workspace was claimed and this agent no longer exists. */
  async abandon(): Promise<void> {
    this.#stopping.abort();
    await this.#reach.end({ stays: true });
    this.#mcp.end();
    await this.#groups.endAll(GRACE_MS);
    await finishesWithin(this.#options.clock, FINAL_LOGS_TIMEOUT_MS, this.#runner.waitUntilIdle());
    this.#removeFiles();
  }

  /** Runs the stop scripts, ends all remaining processes, and reports the result. Stops waiting for scripts when `gone` fires. */
  async end(gone: AbortSignal): Promise<void> {
    const { manifest, env, clock, lifecycle } = this.#options;
    this.#stopping.abort();
    lifecycle.enter("shutting_down");
    const timeout = waitForAbort(gone).then(() => pause(clock, STOP_SCRIPTS_AFTER_GONE_MS));
    const outcome = await Promise.race([
      runStopScripts(manifest.scripts, this.#runner),
      timeout.then(() => "shutdown_timeout" as const),
    ]);
    await this.#reach.end();
    this.#mcp.end();
    await this.#groups.endAll(GRACE_MS);
    await finishesWithin(clock, FINAL_LOGS_TIMEOUT_MS, this.#runner.waitUntilIdle());
    // Secrets must not stay in a volume that others can mount or copy while the workspace is stopped. The next start writes them again.
    writeSecretFiles({ secrets: [], workspaceId: manifest.workspaceId }, env);
    this.#removeFiles();
    lifecycle.enter(outcome);
  }

  /**
   * Applies secrets that changed before a reconnect to files and to programs that start from now on. Everything else in the manifest is
   * fixed for the build.
   */
  renewSecrets({ secrets }: Manifest): void {
    if (this.#stopping.signal.aborted) return;
    const { manifest, env } = this.#options;
    writeSecretFiles({ secrets, workspaceId: manifest.workspaceId }, env, { isStart: false });
    const next = this.#buildProgramEnv({ ...manifest, secrets });
    for (const name of Object.keys(this.#programEnv)) if (!(name in next)) delete this.#programEnv[name];
    Object.assign(this.#programEnv, next);
  }

  /** Gives programs the token that the server has accepted. */
  updateToken(token: string): void {
    if (!this.#stopping.signal.aborted) this.#token.update(token);
  }

  #buildProgramEnv(manifest: Manifest): Environment {
    const secrets = listSecretVariables(manifest);
    return buildScriptEnvironment({
      ...this.#options,
      manifest,
      token: this.#token.env,
      git: this.#git.env,
      bin: this.#bin,
      secrets,
    });
  }

  /** Removes the files that the environment of the workspace's programs refers to. */
  #removeFiles(): void {
    this.#git[Symbol.dispose]();
    this.#bin[Symbol.dispose]();
    this.#token[Symbol.dispose]();
  }

  async #start(): Promise<void> {
    const { manifest, lifecycle } = this.#options;
    lifecycle.enter("starting");
    const outcome = await runStartScripts(manifest.scripts, this.#runner, this.#stopping.signal);
    this.#isStarting = false;
    log("daemon").info("start scripts have ended: {outcome}", { outcome });
    if (this.#stopping.signal.aborted) return;
    lifecycle.enter(outcome);
    await Promise.all([this.#context.run(), this.#reach.containers.begin()]);
  }

  #watch(): void {
    const { manifest, env, clock, connection } = this.#options;
    const { signal } = this.#stopping;
    for (const script of manifest.scripts) {
      if (script.cron !== "") void runCron(script, this.#runner, { clock, signal });
    }
    collectMetadata(manifest.metadata, {
      connection,
      clock,
      signal,
      env: this.#programEnv,
      directory: resolveFolder(manifest.directory, env),
      groups: this.#groups,
    });
    watchApps(manifest.apps, { connection, clock, signal, isStarting: () => this.#isStarting });
    const agent_id = toId(manifest.agentId);
    void watchSpace({
      connection,
      clock,
      signal,
      logs: this.#options.logs,
      home: env.HOME || homedir(),
      kills: new MemoryKills({ agent_id }),
    });
    const jobs = new Jobs(agent_id);
    void reportStats({
      jobs: (elapsed_ms) => jobs.takeActive(elapsed_ms),
      connection,
      clock,
      signal,
      open: () => this.#reach.open,
      latency: () => connection.measureRoundTrip(),
    });
  }
}

/** Returns additional folders with context of the workspace, from the variable `SLIPWAY_CONTEXT_SOURCES`, which is a list like PATH. */
const listContextFolders = (text: string, env: AgentSessionOptions["env"]): string[] =>
  text
    .split(delimiter)
    .filter((folder) => folder.trim() !== "")
    .map((one) => resolveFolder(one, env));
