// Runs one script of the template: turns its output into log lines as it arrives, and reports its start, end and result to the server
// (rules DM-6, DM-7).
import { closeSync, mkdirSync, openSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { APPEND_FLAGS } from "#base/system/regular-file.ts";
import type { LogLevel } from "#schema/log-level.ts";
import { Timing_Stage, Timing_Status, type WorkspaceAgentScript } from "#src/wire/gen/agent_pb.ts";
import type { BinFolder } from "../bin-folder.ts";
import type { Reports } from "../connection/reports.ts";
import { type Environment, expandPath, resolveFolder, toId } from "../environment.ts";
import { toDurationMs, toTimestamp } from "../times.ts";
import type { ProcessGroups } from "./groups.ts";
import { LineSplitter } from "./lines.ts";
import type { LogSource, Logs } from "./logs.ts";
import type { ProcessEnd } from "./process.ts";
import { runScript } from "./run-script.ts";

export type Script = WorkspaceAgentScript;
export type Stage = "start" | "stop" | "cron";
/** The result of a run, as named in the specification. */
export type ScriptStatus = "ok" | "exit_failure" | "timed_out" | "pipes_left_open";

export type ScriptRunnerOptions = {
  clock: Clock;
  env: Environment;
  bin: Pick<BinFolder, "createScriptEnv">;
  directory: string;
  groups: ProcessGroups;
  logs: Logs;
  reports: Reports;
};

const STAGES = { start: Timing_Stage.START, stop: Timing_Stage.STOP, cron: Timing_Stage.CRON } as const;
const STATUSES: Readonly<Record<ScriptStatus, Timing_Status>> = {
  ok: Timing_Status.OK,
  exit_failure: Timing_Status.EXIT_FAILURE,
  timed_out: Timing_Status.TIMED_OUT,
  pipes_left_open: Timing_Status.PIPES_LEFT_OPEN,
};
/** The exit code that shells return for a program that cannot be started. */
const CANNOT_START_CODE = 126;

export class ScriptRunner {
  readonly #options: ScriptRunnerOptions;
  readonly #running = new Set<Promise<unknown>>();

  constructor(options: ScriptRunnerOptions) {
    this.#options = options;
  }

  /** Resolves when the script has ended; never rejects. `limit_ms` applies to a script without its own timeout; 0 for none. */
  run(script: Script, stage: Stage, limit_ms = 0): Promise<ScriptStatus> {
    const run = this.#runStage(script, stage, limit_ms).finally(() => this.#running.delete(run));
    this.#running.add(run);
    return run;
  }

  /** Resolves when running scripts have ended and were reported. */
  async waitUntilIdle(): Promise<void> {
    await Promise.all(this.#running);
  }

  async #runStage(script: Script, stage: Stage, limit_ms: number): Promise<ScriptStatus> {
    const { clock, logs, reports } = this.#options;
    const source = logs.getSource(script.logSourceId);
    const start = clock.now();
    const timeout_ms = toDurationMs(script.timeout) || limit_ms;
    const result = await this.#runLogged(script, source, timeout_ms);
    const status = toStatus(result);
    if (status === "exit_failure" && result.exit_code !== CANNOT_START_CODE)
      this.#log(source, "error", `The script failed with exit code ${result.exit_code}.`);
    if (status === "timed_out")
      this.#log(source, "warn", `The script was ended: it ran longer than ${timeout_ms / 1000} s.`);
    if (status === "pipes_left_open") {
      this.#log(
        source,
        "warn",
        "The script has ended but left a program with its output open, which is not read any more.",
      );
    }
    const timing = {
      scriptId: script.id,
      start: toTimestamp(start),
      end: toTimestamp(clock.now()),
      exitCode: result.exit_code,
      stage: STAGES[stage],
      status: STATUSES[status],
    };
    void reports.add(`end of script ${script.displayName}`, (api, signal) => api.scriptCompleted({ timing }, signal));
    return status;
  }

  async #runLogged(script: Script, source: LogSource, timeout_ms: number): Promise<ProcessEnd> {
    const { clock, env, bin, directory, groups } = this.#options;
    const splitters = { stdout: new LineSplitter(), stderr: new LineSplitter() };
    // Programs also write progress to standard error; only the exit code indicates failure.
    const logLines = (lines: readonly string[]): void => {
      for (const line of lines) this.#log(source, "info", line);
    };
    const file = this.#openFile(script.logPath, source);
    try {
      return await runScript(script.script, {
        // The agent's folder may not exist until a start script creates it.
        directory: script.isDotfiles ? resolveFolder("", env) : directory,
        env: { ...env, ...bin.createScriptEnv(toId(script.id)) },
        clock,
        groups,
        timeout_ms,
        onOutput: (from, bytes) => {
          file?.write(bytes);
          logLines(splitters[from].push(bytes));
        },
      });
    } catch (error) {
      this.#log(source, "error", `The script cannot be started: ${(error as Error).message}`);
      return { exit_code: CANNOT_START_CODE, timed_out: false, pipes_left_open: false };
    } finally {
      for (const splitter of Object.values(splitters)) logLines(splitter.end());
      file?.close();
    }
  }

  #log(source: LogSource, level: LogLevel, output: string): void {
    source.add({ at: this.#options.clock.now(), level, output });
  }

  /** Opens the file that also receives the script's output. If it cannot be written, a line reports it and the script still runs. */
  #openFile(path: string, source: LogSource): { write(bytes: Uint8Array): void; close(): void } | undefined {
    if (path === "") return undefined;
    const { env, directory } = this.#options;
    const logFile = expandPath(path, env, directory);
    try {
      mkdirSync(dirname(logFile), { recursive: true });
      const file = openSync(logFile, APPEND_FLAGS, 0o600);
      return { write: (bytes) => reportFailure(() => writeSync(file, bytes)), close: () => closeSync(file) };
    } catch (error) {
      this.#log(source, "warn", `The log file cannot be written: ${(error as Error).message}`);
      return undefined;
    }
  }
}

const toStatus = ({ exit_code, timed_out, pipes_left_open }: ProcessEnd): ScriptStatus => {
  if (timed_out) return "timed_out";
  if (exit_code !== 0) return "exit_failure";
  return pipes_left_open ? "pipes_left_open" : "ok";
};

const reportFailure = (write: () => void): void => {
  try {
    write();
  } catch (error) {
    log("daemon").debug("a log file cannot be written: {error}", { error });
  }
};
