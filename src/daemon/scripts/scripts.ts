// Runs the scripts of an agent: start scripts in parallel, stop scripts when the daemon ends, cron scripts on schedule (rules DM-5, DM-13).
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { pause } from "#base/retry.ts";
import { findNextScriptTime } from "#base/schedule/cron.ts";
import type { Script, ScriptRunner, ScriptStatus } from "./script-runner.ts";

/** Maximum duration of one timer: timers cannot wait for months, and the wall clock may be changed in the meantime. */
const MAX_WAIT_MS = 3_600_000;
/** Timeout of stop scripts that have no timeout, because the daemon must end within a limited time. */
const STOP_TIMEOUT_MS = 20_000;

/**
 * Installs the owner's dotfiles, then runs the start scripts in parallel, even if the dotfiles failed. Resolves when the scripts that block
 * login have ended, or all scripts if none blocks; the others continue. Returns `start_error` if a script failed, else `start_timeout` if
 * one timed out, else `ready` (facts/platform 2.2).
 */
export const runStartScripts = async (
  scripts: readonly Script[],
  runner: ScriptRunner,
  signal: AbortSignal,
): Promise<"ready" | "start_error" | "start_timeout"> => {
  for (const script of scripts.filter((one) => one.isDotfiles)) await runner.run(script, "start");
  if (signal.aborted) return "ready";
  const starting = scripts.filter((one) => one.runOnStart && !one.isDotfiles);
  const runs = starting.map((script) => ({ script, end: runner.run(script, "start") }));
  const blocking = runs.filter(({ script }) => script.startBlocksLogin);
  const worst = findWorst(await Promise.all((blocking.length > 0 ? blocking : runs).map(({ end }) => end)));
  return worst === "ok" ? "ready" : `start_${worst}`;
};

/** Runs the stop scripts in parallel. Returns `off`, `shutdown_error` or `shutdown_timeout`. */
export const runStopScripts = async (
  scripts: readonly Script[],
  runner: ScriptRunner,
): Promise<"off" | "shutdown_error" | "shutdown_timeout"> => {
  const runs = scripts.filter((one) => one.runOnStop).map((script) => runner.run(script, "stop", STOP_TIMEOUT_MS));
  const worst = findWorst(await Promise.all(runs));
  return worst === "ok" ? "off" : `shutdown_${worst}`;
};

const findWorst = (statuses: readonly ScriptStatus[]): "ok" | "error" | "timeout" => {
  if (statuses.includes("exit_failure")) return "error";
  return statuses.includes("timed_out") ? "timeout" : "ok";
};

/**
 * Runs the script on its schedule (five fields, the machine's time zone) until the signal fires. Skips a run that is due while the previous
 * one is running.
 */
export const runCron = async (
  script: Script,
  runner: ScriptRunner,
  { clock, signal }: { clock: Clock; signal: AbortSignal },
): Promise<void> => {
  while (!signal.aborted) {
    const nextRunAt = findNextRun(script, clock.now());
    if (nextRunAt === undefined) return;
    while (!signal.aborted && clock.now() < nextRunAt) {
      await pause(clock, Math.min(nextRunAt - clock.now(), MAX_WAIT_MS), signal);
    }
    if (!signal.aborted) await runner.run(script, "cron");
  }
};

const findNextRun = ({ cron, displayName }: Script, now: number): number | undefined => {
  try {
    return findNextScriptTime(cron, now);
  } catch (error) {
    log("daemon").error("the script {script} has an invalid cron expression: {error}", {
      script: displayName,
      error,
    });
    return undefined;
  }
};
